"""Every sentence of a store is in a field that search reads, whatever program wrote the store."""

import json

import pytest

from steelyard.memory.text import CONTENT
from steelyard_eval.extensions.importers import load_store

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
SAMPLES = {
    "markdown": {"notes/Cobalt.md": MARKDOWN},
    "basic_memory": {"notes/Cobalt.md": MARKDOWN.replace("title:", "permalink: main/cobalt\ntitle:")},
    "claude": {"notes/Cobalt.md": MARKDOWN, "notes/MEMORY.md": "- [Cobalt](Cobalt.md): never by hand\n"},
    "mcp_memory": {"memory.jsonl": json.dumps({"type": "entity", "name": "a", "observations": ["It is lit.", 1]})},
    "table": {"t.csv": "id,text,answer,note\n1,The kiln is lit.,By Ann of course.,She came at noon.\n"},
}
SAID = {
    "markdown": MARKED,
    "basic_memory": MARKED,
    "claude": [*MARKED, "never by hand"],
    "mcp_memory": ["It is lit."],
    "table": ["The kiln is lit.", "By Ann of course.", "She came at noon."],
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_of_a_small_store(tmp_path, kind):
    for name, text in SAMPLES[kind].items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(text)
    found = searched(load_store(tmp_path / "in" / next(iter(SAMPLES[kind])).split("/")[0], kind))
    header = ("title: ", "summary: ", "aliases: ", "# ")
    said = [flat(next((line.removeprefix(h) for h in header if line.startswith(h)), line)) for line in SAID[kind]]
    assert [text for text in said if text.replace("Smalt, ", "") not in found] == []
