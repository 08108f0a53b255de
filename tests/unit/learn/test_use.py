"""Logs of other programs: what is read of them, what is taken to follow from it, what is written."""

import json
from collections import Counter

import pytest
from command_line import run
from written_set import write_lines, write_set

from steelyard.base.errors import ConfigError, DataError
from steelyard_eval.datasets import load
from steelyard_eval.extensions.importers import import_store
from steelyard_eval.extensions.usage import KINDS
from steelyard_eval.extensions.usage.gather import gather
from steelyard_eval.extensions.usage.log_writer import TIMELESS
from steelyard_eval.extensions.usage.traces import _placed

ENTRIES = [
    {
        "id": "a1b2c3d4-0001",
        "title": "Rotate the signing keys monthly",
        "text": "Keys rotate on the first of a month.",
    },
    {"id": "a1b2c3d4-0002", "title": "Cache", "text": "The cache lives for ten minutes."},
    {
        "id": "a1b2c3d4-0003",
        "title": "Retries need jitter",
        "text": "Wait a random time.",
        "related_files": ["src/net/retry.py"],
    },
]


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def small(tmp_path):
    """A data set of three entries and a query."""
    qrels = "q1 0 a1b2c3d4-0001 1\n"
    return load(write_set(tmp_path / "small", ENTRIES, ["how do keys rotate"], qrels, system="echovault"))


@pytest.fixture
def recorded(store_root, tmp_path):
    folder = tmp_path / "recorded"
    import_store(store_root / "echovault-newest", folder)
    return load(folder)


def impressions(found):
    return [line for line in map(json.loads, found.lines) if "hits" in line]


def shown(line):
    return [hit["object_id"] for hit in line["hits"]]


def acted(line):
    return {act.get("object_id"): act["action_name"] for act in line["actions"]}


KINDS_OF_USE = {
    "details_opened": "opened",
    "related_file_edited": "used",
    "title_quoted": "cited",
    "id_quoted": "cited",
}


def test_recorded_transcripts_give_what_was_put_in(recorded, store_root):
    expected = json.loads((store_root / "transcripts" / "expected.json").read_text())["searches"]
    found = gather(recorded, f"transcripts:{store_root / 'transcripts'}")
    good = sorted((one for one in expected if not one["error"]), key=lambda one: one["tool_use_id"])
    lists = {tuple(hit["id"] for hit in one["shown"]) for one in good}
    lines = impressions(found)
    assert {tuple(shown(line)) for line in lines} == lists
    assert len(lines) == len(good) == 14
    uses = Counter((use["id"], KINDS_OF_USE[use["kind"]]) for one in good for use in one["uses"])
    assert Counter(act for line in lines for act in acted(line).items()) == uses
    assert found.record["asked_again"] == sum(one.get("requeried", False) for one in expected) == 2
    assert {line["filter"].get("project") for line in lines} == {None, "quay-web", "ticket-api"}
    texts = {query.id: query.text for query in recorded.queries}
    asked = Counter(texts[line["query_id"]] for line in lines if line["query_id"] in texts)
    assert asked == Counter(one["query"] for one in good if one["query"] in texts.values())


def test_spans_of_the_real_library_give_the_same_in_both_forms(recorded, store_root):
    expected = json.loads((store_root / "otel" / "expected.json").read_text())
    found = [
        gather(recorded, f"otel:{store_root / 'otel' / name}")
        for name in ("traces-otlp.json", "spans-console.jsonl")
    ]
    assert [len(impressions(one)) for one in found] == [11, 11]  # 10 and 3, of which 2 captured no content
    first, second = ([(shown(line), acted(line)) for line in impressions(one)] for one in found)
    assert first == second
    captured = [one["records"] for one in expected["searches"]] + [
        one["documents"] for one in expected["retrievals"]
    ]
    assert sorted(names for names, _ in first) == sorted([hit["id"] for hit in own] for own in captured if own)
    acts = {name: kind for _, own in first for name, kind in own.items()}
    later = {one["id"] for one in expected["later"] if one.get("id")}
    assert set(acts) <= later
    assert acts["6c08a7ee-58a7-469d-815c-ffff7abce22d"] == "modified"


def test_an_entry_opened_after_a_search_without_content_is_no_evidence_on_an_older_list(recorded, store_root):
    """26e71e95 was opened after a retrieval that captured no documents; an older list has it by chance."""
    found = gather(recorded, f"otel:{store_root / 'otel' / 'traces-otlp.json'}")
    assert not any("26e71e95-9c5b-468f-bae1-7b4f4f2b88fa" in acted(line) for line in impressions(found))


def test_ubi_gives_its_lists_and_events(recorded, store_root):
    expected = json.loads((store_root / "ubi" / "expected.json").read_text())
    found = gather(recorded, f"ubi:{store_root / 'ubi'}")
    lists = Counter(str(one["hits"]) for one in expected["queries"])
    assert Counter(str(shown(line)) for line in impressions(found)) == lists


# Made sessions


def claude(events, session="s1", start=0):
    """Lines of a session: ('ask'|'say', text), ('search', query, hits), ('call', name, input)."""
    lines = []
    for at, (kind, *rest) in enumerate(events):
        stamp = f"2026-07-22T09:{(start + at) // 60:02}:{(start + at) % 60:02}.000Z"
        base = {"sessionId": session, "timestamp": stamp}
        if kind == "ask":
            lines.append({**base, "type": "user", "message": {"role": "user", "content": rest[0]}})
        elif kind == "say":
            content = [{"type": "text", "text": rest[0]}]
            lines.append({**base, "type": "assistant", "message": {"content": content}})
        else:
            name, args = ("mcp__echovault__memory_search", {"query": rest[0]}) if kind == "search" else rest
            call = {"type": "tool_use", "id": f"t{session}{start + at}", "name": name, "input": args}
            lines.append({**base, "type": "assistant", "message": {"content": [call]}})
            answer = json.dumps(rest[1]) if kind == "search" else "done"
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": answer}
            lines.append({**base, "type": "user", "message": {"content": [result]}})
    return lines


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    write_lines(path, lines)
    return path


LIST = [{"id": one["id"], "title": one["title"], "what": one["text"], "score": 0.5} for one in ENTRIES]


def acts_of(small, tmp_path, *events):
    path = write(
        tmp_path / "logs" / "one.jsonl", claude([("ask", "hello"), ("search", "signing secrets", LIST), *events])
    )
    return [acted(line) for line in impressions(gather(small, f"transcripts:{path}"))]


KEYS, CACHE, RETRY = (one["id"] for one in ENTRIES)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([("say", "We follow “Rotate the signing keys monthly”.")], {KEYS: "cited"}),
        ([("say", "Rotate the signing keys monthly, as the note says.")], {KEYS: "cited"}),
        ([("say", "a1b2c3d4-0003 has it")], {RETRY: "cited"}),
        ([("say", "the cache is warm")], {}),  # a title of one word, in plain text
        ([("say", 'see "Cache": ten minutes')], {CACHE: "cited"}),
        ([("say", "the class `Cache` grows")], {}),
        ([("say", '"Rotate the signing keys monthly" is not relevant here.')], {}),
        ([("say", "I saw a1b2c3d4-0003. It doesn't help us.")], {}),
        (
            [("say", "a1b2c3d4-0001 and a1b2c3d4-0003 have it")],
            {KEYS: "cited", RETRY: "cited"},
        ),  # two are no listing
        ([("say", "Found: Rotate the signing keys monthly; `Cache`; Retries need jitter")], {}),  # a listing
        ([("call", "Edit", {"file_path": "/home/x/src/net/retry.py", "new_string": "x"})], {RETRY: "used"}),
        ([("call", "Edit", {"file_path": "/home/x/other/retry.py", "new_string": "x"})], {}),
        ([("ask", "fix retry.py"), ("call", "Edit", {"file_path": "/x/src/net/retry.py"})], {}),
        ([("call", "Bash", {"command": "memory details a1b2c3d4-0003"})], {RETRY: "opened"}),
        ([("call", "Read", {"file_path": RETRY})], {RETRY: "opened"}),
        ([("call", "mcp__speckit__memory_validate", {"id": RETRY, "wasUseful": True})], {RETRY: "thumbs_up"}),
        ([("call", "mcp__speckit__memory_validate", {"ids": [RETRY, KEYS], "wasUseful": True})], {}),  # of which?
        ([("call", "mcp__echovault__memory_details", {"id": RETRY}), ("say", "a1b2c3d4-0003 is irrelevant.")], {}),
        ([("call", "mcp__x__memory_delete", {"id": RETRY})], {}),
        ([("ask", "and?"), ("ask", "more?"), ("say", "a1b2c3d4-0003 has it")], {}),  # two questions later
        (
            [
                ("call", "mcp__echovault__memory_save", {"title": "Retries need jitter"}),
                ("say", "Saved Retries need jitter"),
            ],
            {},
        ),
        ([("search", "signing secrets again", LIST[1:2])], {None: "none_useful"}),
        ([("search", "signing secrets again", LIST), ("say", "a1b2c3d4-0003 has it")], {}),
        ([("search", "Retries need jitter", LIST[2:])], {}),
        ([("search", "lunch menu", LIST[1:2])], {}),
    ],
)
def test_what_follows_a_search(small, tmp_path, events, expected):
    assert acts_of(small, tmp_path, *events)[0] == expected


def test_a_resumed_session_is_read_once_with_what_followed_in_either_file(small, tmp_path):
    events = [("ask", "hello"), ("search", "signing secrets", LIST)]
    write(tmp_path / "logs" / "one.jsonl", claude(events))
    write(tmp_path / "logs" / "two.jsonl", claude([*events, ("say", "a1b2c3d4-0003 has it")]))
    found = gather(small, f"transcripts:{tmp_path / 'logs'}")
    assert [acted(line) for line in impressions(found)] == [{RETRY: "cited"}]


def test_logs_without_session_ids_are_a_session_each(small, tmp_path):
    for at, name in enumerate(("one", "two")):
        lines = claude([("search", "signing secrets", LIST)], start=30 * at)
        write(tmp_path / "logs" / f"{name}.jsonl", [{**line, "sessionId": None} for line in lines])
    assert gather(small, f"transcripts:{tmp_path / 'logs'}").record["clients"] == 2


def test_a_beginning_that_two_ids_share_names_neither(small, tmp_path):
    assert acts_of(small, tmp_path, ("search", "lunch menu", LIST[:2]), ("say", "a1b2c3d4 has it")) == [{}, {}]


def test_what_was_read_stays_when_the_transcript_is_gone_and_nothing_changes_twice(small, tmp_path):
    first = write(tmp_path / "logs" / "one.jsonl", claude([("search", "how do keys rotate", LIST)]))
    found = gather(small, f"transcripts:{tmp_path / 'logs'}")
    assert found.changed
    found.write()
    before = found.path.read_bytes()
    assert not gather(small, f"transcripts:{tmp_path / 'logs'}").changed
    first.unlink()
    write(tmp_path / "logs" / "two.jsonl", claude([("search", "other words", LIST)], session="s2"))
    again = gather(small, f"transcripts:{tmp_path / 'logs'}")
    again.write()
    assert len(impressions(again)) == 2
    assert set(before.splitlines()) < set(found.path.read_bytes().splitlines())
    assert again.record["without_text"] == 0  # one is a query of the data set, the other stands in the transcript


def test_texts_are_written_only_where_asked_and_without_secrets(small, tmp_path):
    path = write(
        tmp_path / "one.jsonl",
        claude([("search", "plain words", LIST), ("ask", "x"), ("search", "password: hunter22", LIST)]),
    )
    kept = gather(small, f"transcripts:{path}", keep_queries=True)
    assert [line.get("user_query") for line in impressions(kept)] == ["plain words", None]
    kept.path.write_text("")
    kept.path.chmod(0o644)
    kept.write()
    assert kept.path.stat().st_mode & 0o777 == 0o600
    kept.path.unlink()
    plain = gather(small, f"transcripts:{path}")
    assert b"plain words" not in "".join(plain.lines).encode()
    assert b"plain words" in b"".join(plain.held.lines)


SOLERI = {
    "success": True,
    "op": "search",
    "data": [
        {"entry": {"id": one["id"], "title": one["title"]}, "score": 0.4, "breakdown": {}} for one in ENTRIES
    ],
}
SPEC_KIT = {
    "summary": "Found 3",
    "data": {"count": 3, "results": [{"id": one["id"], "similarity": 71.5, "filePath": "x"} for one in ENTRIES]},
}
MOLTNET = {"results": [{"id": one["id"], "content": one["text"], "score": 0.2} for one in ENTRIES], "total": 3}
CORTEX = {
    "success": True,
    "query": "x",
    "results": [{"uri": one["id"], "score": 0.9, "snippet": ""} for one in ENTRIES],
    "total": 3,
}


@pytest.mark.parametrize(
    ("name", "args", "answer", "opening"),
    [
        (
            "mcp__my-agent__my-agent_vault",
            {"op": "search", "params": {"query": "x y"}},
            SOLERI,
            ("mcp__my-agent__my-agent_vault", {"op": "load_entries", "params": {"ids": [RETRY]}}),
        ),
        ("mcp__speckit__memory_search", {"query": "x y"}, SPEC_KIT, ("Read", {"file_path": "/none"})),
        (
            "mcp__moltnet__entries_search",
            {"query": "x y"},
            MOLTNET,
            ("mcp__moltnet__entries_get", {"entry_id": RETRY}),
        ),
        ("mcp__cortex-mem__search", {"query": "x y"}, CORTEX, ("mcp__cortex-mem__content", {"uri": RETRY})),
    ],
)
def test_the_other_systems_servers(small, tmp_path, name, args, answer, opening):
    lines = claude([("call", name, args), ("call", *opening)])
    lines[1]["message"]["content"][0]["content"] = [{"type": "text", "text": json.dumps(answer)}]
    found = gather(small, f"transcripts:{write(tmp_path / 'one.jsonl', lines)}")
    (line,) = impressions(found)
    assert shown(line) == [one["id"] for one in ENTRIES]
    assert acted(line) == ({} if opening[0] == "Read" else {RETRY: "opened"})
    assert line["policy"] in {json.loads(text)["policy"] for text in found.lines if "configuration" in text}


# What programs write in a person's place

TITLE = ENTRIES[0]["title"]


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        (f"This session is being continued from a previous conversation. Notes: {TITLE}.", {}),
        (f"In short: {TITLE}.", {"isCompactSummary": True}),
        (f"In short: {TITLE}.", {"isVisibleInTranscriptOnly": True}),
        (f"Base directory of a skill. {TITLE}.", {"isMeta": True}),
        (f"The monitor says: {TITLE}.", {"origin": {"kind": "task-notification"}}),
        (f"Go on with: {TITLE}.", {"promptSource": "system"}),
        (f"<task-notification>\n<summary>{TITLE}</summary>\n</task-notification>\nRead the file.", {}),
        (f"<system-reminder>\nMemory has: {TITLE}.\n</system-reminder>", {}),
        (f"<command-name>/recall</command-name>\n<command-args>{TITLE}</command-args>", {}),
        (f"<local-command-stdout>{TITLE}</local-command-stdout>", {}),
        (f"<bash-stdout>{TITLE}</bash-stdout><bash-stderr></bash-stderr>", {}),
        (f"Stop hook feedback:\n- {TITLE}: not done", {}),
        (f"PostToolUse:Edit hook additional context: {TITLE}", {}),
        (f"[Request interrupted by user] {TITLE}", {}),
        ([{"type": "text", "text": f"<ide_selection>{TITLE}</ide_selection>"}], {}),
        (f"{{}}<system-reminder>{TITLE}</system-reminder>".format("\n"), {"origin": {"kind": "human"}}),
    ],
)
def test_what_a_program_writes_is_no_question(small, tmp_path, content, fields):
    """The title is cited in answer to the person's question, and not because a program's text named it."""
    lines = claude(
        [("ask", "hello"), ("search", "signing secrets", LIST), ("ask", ""), ("say", f"See \u201c{TITLE}\u201d.")]
    )
    lines[3] = {**lines[3], **fields, "message": {"role": "user", "content": content}}
    found = gather(small, f"transcripts:{write(tmp_path / 'one.jsonl', lines)}")
    assert [acted(line) for line in impressions(found)] == [{KEYS: "cited"}]


@pytest.mark.parametrize(
    "content",
    [
        f"Is it so that we {TITLE}?",
        f"<system-reminder>Be brief.</system-reminder>\nIs it so that we {TITLE}?",
        [
            {"type": "text", "text": "<ide_opened_file>The user opened a.py</ide_opened_file>"},
            {"type": "text", "text": f"Is it so that we {TITLE}?"},
        ],
        f"<b>{TITLE}</b> is what I want to know about",
    ],
)
def test_what_a_person_writes_beside_a_program_is_a_question(small, tmp_path, content):
    lines = claude([("ask", ""), ("search", "signing secrets", LIST), ("say", f"We do \u201c{TITLE}\u201d.")])
    lines[0]["message"]["content"] = content
    found = gather(small, f"transcripts:{write(tmp_path / 'one.jsonl', lines)}")
    assert [acted(line) for line in impressions(found)] == [{}]


# Times, 2026-07-22T09:00:00Z and later, which `date -u +%s` gives as 1784710800

START = 1784710800


def traced(kind, begin, end, agent_end):
    """A search for x y inside an agent's span, whose answer names the last entry."""
    answer = "a1b2c3d4-0003 has it"
    if kind == "openinference":
        documents = {
            f"retrieval.documents.{at}.document.{key}": value
            for at, one in enumerate(ENTRIES)
            for key, value in {"id": one["id"], "score": 0.5, "content": one["text"]}.items()
        }
        search = {"input.value": "x y", "openinference.span.kind": "RETRIEVER", **documents}
        agent = {
            "openinference": {"span": {"kind": "AGENT"}},
            "input": {"value": "hello"},
            "output": {"value": answer},
        }
        return [
            {"context": {"trace_id": "t", "span_id": key}, "parent_id": around, "start_time": begin,
             "end_time": until, "attributes": has}
            for key, around, until, has in (("1", "2", end, search), ("2", None, agent_end, agent))
        ]  # fmt: skip
    records = json.dumps([{"id": one["id"], "score": 0.5} for one in ENTRIES])
    said = json.dumps([{"role": "assistant", "parts": [{"content": answer}]}])
    search = {"operation.name": "search_memory", "memory.query.text": "x y", "memory.records": records}
    agent = {"operation.name": "invoke_agent", "output.messages": said}
    spans = [
        {"traceId": "t", "spanId": key, "parentSpanId": around, "startTimeUnixNano": begin,
         "endTimeUnixNano": until, "attributes": [
            {"key": f"gen_ai.{name}", "value": {"stringValue": value}} for name, value in has.items()]}
        for key, around, until, has in (("2", "1", end, search), ("1", "", agent_end, agent))
    ]  # fmt: skip
    return [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}]


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("form", [int, float, str])
@pytest.mark.parametrize("kind", ["otel", "openinference"])
def test_times_are_numbers_of_any_unit_and_form(small, tmp_path, kind, unit, form):
    records = traced(kind, *(form((START + late) * unit) for late in (0, 2, 9)))
    found = gather(small, f"{kind}:{write(tmp_path / 'one.jsonl', records)}")
    (line,) = impressions(found)
    assert line["timestamp"].startswith("2026-07-22T09:00:00")
    assert acted(line) == {RETRY: "cited"}


@pytest.mark.parametrize("kind", ["otel", "openinference"])
def test_an_answer_follows_the_searches_inside_its_span_whatever_its_clock_says(small, tmp_path, kind):
    records = traced(kind, START, START + 2, START + 1)
    found = gather(small, f"{kind}:{write(tmp_path / 'one.jsonl', records)}")
    assert [acted(line) for line in impressions(found)] == [{RETRY: "cited"}]


def test_the_names_of_the_schema_are_read_as_protobuf_allows(small, tmp_path):
    text = json.dumps(traced("otel", START, START + 2, START + 9))
    for name in ("resourceSpans", "scopeSpans", "startTimeUnixNano", "stringValue", "parentSpanId", "traceId"):
        text = text.replace(name, "".join(f"_{c.lower()}" if c.isupper() else c for c in name))
    found = gather(small, f"otel:{write(tmp_path / 'one.jsonl', json.loads(text.replace('spanId', 'span_id')))}")
    assert [acted(line) for line in impressions(found)] == [{RETRY: "cited"}]


@pytest.mark.parametrize("begin", ["soon", None, 0, True, 10**25, [START, 0]])
def test_a_search_without_a_time_says_that_it_is_its_time(small, tmp_path, begin):
    found = gather(small, f"otel:{write(tmp_path / 'one.jsonl', traced('otel', begin, begin, begin))}")
    assert found.record["aside"] == {TIMELESS: 1}


# Odd input


@pytest.mark.parametrize("kind", list(KINDS))
def test_garbage_ends_in_a_sentence(small, tmp_path, kind):
    path = tmp_path / "odd.jsonl"
    odd = [
        {
            "type": "user",
            "message": {"content": [None, 3, {"type": "tool_result", "content": {"a": 1}}]},
            "timestamp": 5,
        }
    ]
    odd += [
        {"resourceSpans": [None, {"scopeSpans": [{"spans": [{"attributes": [{"key": 1}]}]}]}]},
        {"attributes": 3},
    ]
    odd += [{"query_id": [], "action_name": 3}]
    odd += [{"resourceSpans": [{"scopeSpans": 5}, {"scopeSpans": [{"spans": 0.5}]}]}, {"resourceSpans": 7}]
    write(path, odd)
    found = gather(small, f"{kind}:{path}")
    assert impressions(found) == []


def test_what_cannot_be_read_is_named(small, tmp_path):
    with pytest.raises(ConfigError, match=r"'transcript'.*transcripts"):
        gather(small, "transcript")
    with pytest.raises(ConfigError, match="does not exist"):
        gather(small, f"otel:{tmp_path / 'none'}")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="empty"):
        gather(small, f"otel:{tmp_path / 'empty'}")
    with pytest.raises(ConfigError, match="otel:PATH"):
        gather(small, "otel")
    log = tmp_path / "mine.jsonl"
    log.write_text('{"schema_version": 1}\n')
    path = write(tmp_path / "one.jsonl", claude([("search", "x y", LIST)]))
    with pytest.raises(DataError, match="--from"):
        gather(small, f"transcripts:{path}", log=log)


def test_the_programs_own_places_are_looked_at(small, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    with pytest.raises(ConfigError, match=r"claude/projects"):
        gather(small, "transcripts")
    write(tmp_path / "claude" / "projects" / "x" / "one.jsonl", claude([("search", "x y", LIST)]))
    assert len(impressions(gather(small, "transcripts"))) == 1


def test_dry_run_shows_and_writes_nothing(small, tmp_path):
    path = write(tmp_path / "one.jsonl", claude([("search", "x y", LIST)]))
    words = ["learn", str(small.path), "--from", f"transcripts:{path}", "--dry-run"]
    done = run(*words)
    assert done.exit_code == 0, done.output
    assert '"object_id":"a1b2c3d4-0003"' in done.stdout
    assert " 1 searches" in done.stdout
    assert "x y" not in done.stdout
    assert not (small.path / "feedback.transcripts.jsonl").exists()
    assert json.loads(run(*words, "--json").stdout)["searches"] == 1
    assert run("learn", small.path, "--dry-run").exit_code == 2


@pytest.mark.parametrize("span", [{"traceId": "0xt"}, {"context": {"trace_id": "t"}}, {"context.trace_id": "t"}])
def test_a_trace_has_its_id_in_every_spelling(span):
    placed = _placed({**span, "spanId": "1", "parentSpanId": "2"}, ("", "", None, None, ""))
    assert (placed.trace, placed.key, placed.parent) == ("t", "t/1", "t/2")
