"""Every sentence of a store is in a field that search reads, whatever program wrote the store."""

import json

import pytest

from steelyard.memory.text import CONTENT
from steelyard_eval.extensions.importers import importers, load_store

SEARCHED = (*CONTENT, "l0", "l1")
STORES = {
    "echovault": "echovault-newest",
    "soleri": "soleri",
    "spec_kit": "spec-kit",
    "moltnet": "moltnet/moltnet.sql",
    "cortex_mem": "cortex-mem",
    "claude": "claude-memory",
    "basic_memory": "basic-memory/notes",
    "mem0": "mem0",
    "langgraph": "langgraph-sqlite/store.db",
    "mcp_memory": "mcp-memory/memory.jsonl",
}
ENTRIES = (
    "memories",
    "entries",
    "notes",
    "entities",
    "items",
    "messages",
    "layers",
    "resources",
    "edges",
    "links",
)
"""Parts of expected.json that say what entries hold; the others are queries, logs, and what was deleted."""


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def texts_in(value):
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    else:
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from texts_in(part)


def searched(data):
    return flat("\n".join(getattr(entry, name) for entry in data.entries for name in SEARCHED))


def flat(text):
    return " ".join(text.split())


@pytest.mark.parametrize("kind", STORES)
def test_of_a_store_that_its_program_wrote(store_root, kind):
    place = store_root / STORES[kind]
    expected = json.loads((store_root / STORES[kind].split("/")[0] / "expected.json").read_text())
    texts = {flat(text) for part in ENTRIES for text in texts_in(expected.get(part, [])) if len(text.split()) > 2}
    found = searched(load_store(place, kind))
    assert len(texts) > 20
    assert [text for text in texts if text not in found] == []


MARKDOWN = """---
title: Cobalt
summary: blue at any heat
aliases: Smalt, Zaffre of old
warning: keep it off food
---
# Use

Two parts in a hundred.

- [ ] weigh it twice
> [!tip] Sieve it well
> Dust is harmful here.

| what | how much |
|---|---|
| oxide | one spoon only |

```sh
grind --very fine
```

key:: a dataview value

A footnote[^1]. ![[Other#^abc]] %% a comment too %%

[^1]: The note below it.
"""
MARKED = [line for line in MARKDOWN.split("\n") if len(line.split()) > 2]
TALK = [{"role": "user", "content": "The kiln is lit.", "has_answer": True}]
SAMPLES = {
    "markdown": {"notes/Cobalt.md": MARKDOWN},
    "basic_memory": {"notes/Cobalt.md": MARKDOWN.replace("title:", "permalink: main/cobalt\ntitle:")},
    "claude": {"notes/Cobalt.md": MARKDOWN, "notes/MEMORY.md": "- [Cobalt](Cobalt.md): never by hand\n"},
    "mcp_memory": {"memory.jsonl": json.dumps({"type": "entity", "name": "a", "observations": ["It is lit.", 1]})},
    "table": {"t.csv": "id,text,answer,note\n1,The kiln is lit.,By Ann of course.,She came at noon.\n"},
    "locomo": {
        "locomo10.json": json.dumps(
            [
                {
                    "sample_id": "c",
                    "conversation": {
                        "session_1_date_time": "1:56 pm on 8 May, 2023",
                        "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "The kiln is lit."}],
                    },
                    "qa": [{"question": "Is it?", "evidence": ["D1:1"], "category": 4, "answer": "yes"}],
                }
            ]
        )
    },
    "longmemeval": {
        "longmemeval_s.json": json.dumps(
            [
                {
                    "question_id": "q",
                    "question_type": "t",
                    "question": "Is it?",
                    "answer": "yes",
                    "question_date": "2023/04/10 (Mon) 23:07",
                    "haystack_session_ids": ["s"],
                    "haystack_dates": ["2023/04/01 (Sat) 09:00"],
                    "answer_session_ids": ["s"],
                    "haystack_sessions": [TALK],
                }
            ]
        )
    },
    "beir": {
        "b/corpus.jsonl": '{"_id": "d", "title": "On a kiln", "text": "The kiln is lit."}\n',
        "b/queries.jsonl": '{"_id": "1", "text": "lit"}\n',
        "b/qrels/test.tsv": "query-id\tcorpus-id\tscore\n1\td\t1\n",
    },
    "trec": {
        "t/docs.trec": "<DOC>\n<DOCNO> d </DOCNO>\n<TEXT>\nThe kiln is lit.\n</TEXT>\n</DOC>\n",
        "t/topics.txt": "<top>\n<num> Number: 1\n<title> lit\n</top>\n",
        "t/qrels.txt": "1 0 d 1\n",
    },
}
SAID = {
    "markdown": MARKED,
    "basic_memory": MARKED,
    "claude": [*MARKED, "never by hand"],
    "mcp_memory": ["It is lit."],
    "table": ["The kiln is lit.", "By Ann of course.", "She came at noon."],
    "beir": ["On a kiln", "The kiln is lit."],
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_of_a_small_store(tmp_path, kind):
    for name, text in SAMPLES[kind].items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(text)
    found = searched(load_store(tmp_path / "in" / next(iter(SAMPLES[kind])).split("/")[0], kind))
    header = ("title: ", "summary: ", "aliases: ", "# ")
    said = [
        flat(next((line.removeprefix(h) for h in header if line.startswith(h)), line))
        for line in SAID.get(kind, ["The kiln is lit."])
    ]
    assert [text for text in said if text.replace("Smalt, ", "") not in found] == []


def test_every_kind_is_here():
    aside = {"steelyard", "ir_datasets"}  # have no files of their own
    assert set(importers()) == STORES.keys() | SAMPLES.keys() | aside
