"""Logs of other programs: what is read of them, what is taken to follow from it, what is written."""

import json
from collections import Counter
from types import SimpleNamespace

import pytest
from shared import beside, called, document, done, tabled, told, write_lines, write_set

from steelyard.base.errors import ConfigError, DataError
from steelyard_eval.datasets import load
from steelyard_eval.extensions.importers import import_store
from steelyard_eval.extensions.usage import KINDS, gather
from steelyard_eval.extensions.usage.log_writer import TIMELESS
from steelyard_eval.extensions.usage.traces import ANSWER, SEARCH, TraceSpan, _events, _flat, _placed
from steelyard_eval.learn.result import _places

DATA = beside(__file__)
ENTRIES = DATA["ENTRIES"]
KEYS, CACHE, RETRY = (one["id"] for one in ENTRIES)
LIST = [{"id": one["id"], "title": one["title"], "what": one["text"], "score": 0.5} for one in ENTRIES]


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
    return {act.get("object_id", ""): act["action_name"] for act in line["actions"]}


KINDS_OF_USE = {"details_opened": "opened", "related_file_edited": "used"} | dict.fromkeys(
    ("title_quoted", "id_quoted"), "cited"
)


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
    assert found.record["repeated"] == sum(one.get("requeried", False) for one in expected) == 2
    assert {line["filter"].get("project") for line in lines} == {None, "quay-web", "ticket-api"}
    texts = {query.id: query.text for query in recorded.queries}
    asked = Counter(texts[line["query_id"]] for line in lines if line["query_id"] in texts)
    assert asked == Counter(one["query"] for one in good if one["query"] in texts.values())


def test_spans_of_the_real_library_give_the_same_in_both_forms(recorded, store_root):
    expected = json.loads((store_root / "otel" / "expected.json").read_text())
    files = [store_root / "otel" / name for name in ("traces-otlp.json", "spans-console.jsonl")]
    lines = [impressions(gather(recorded, f"otel:{file}")) for file in files]
    first, second = ([(shown(line), acted(line)) for line in own] for own in lines)
    assert len(first) == 11  # 10 and 3, of which 2 captured no content
    assert first == second
    captured = [one["records"] for one in expected["searches"]]
    captured += [one["documents"] for one in expected["retrievals"]]
    assert sorted(names for names, _ in first) == sorted([hit["id"] for hit in own] for own in captured if own)
    acts = {name: kind for _, own in first for name, kind in own.items()}
    assert acts.keys() <= {one["id"] for one in expected["later"] if one.get("id")}
    assert acts["6c08a7ee-58a7-469d-815c-ffff7abce22d"] == "modified"
    # opened after a retrieval that captured no documents: no evidence on an older list, which has it by chance
    assert "26e71e95-9c5b-468f-bae1-7b4f4f2b88fa" not in acts


def test_ubi_gives_its_lists_and_events(recorded, store_root):
    expected = json.loads((store_root / "ubi" / "expected.json").read_text())
    found = gather(recorded, f"ubi:{store_root / 'ubi'}")
    lists = Counter(str(one["hits"]) for one in expected["queries"])
    assert Counter(str(shown(line)) for line in impressions(found)) == lists


# Made sessions


def claude(events, session="s1", start=0):
    """Lines of a session: ('ask'|'say', text), ('search', query, hits), ('call', name, input)."""
    lines = []
    for at, (kind, *rest) in enumerate(events, start):
        base = {"sessionId": session, "timestamp": f"2026-07-22T09:{at // 60:02}:{at % 60:02}.000Z"}
        if kind == "ask":
            lines.append(told(base, "user", rest[0]))
        elif kind == "say":
            lines.append(told(base, "assistant", [{"type": "text", "text": rest[0]}]))
        elif kind == "search":
            query = {"query": rest[0]}
            lines += called(base, f"t{session}{at}", "mcp__echovault__memory_search", query, json.dumps(rest[1]))
        else:
            lines += called(base, f"t{session}{at}", *rest, "done")
    return lines


def gathered(small, tmp_path, lines, kind="transcripts", **options):
    """What is gathered from a file of these lines."""
    return gather(small, f"{kind}:{write_lines(tmp_path / 'one.jsonl', lines)}", **options)


def acts(found):
    return [acted(line) for line in impressions(found)]


ASKED = [("ask", "hello"), ("search", "signing secrets", LIST)]
SAID = ("say", "a1b2c3d4-0003 has it")


@tabled
def test_what_follows_a_search(small, tmp_path, events, expected):
    events = [
        (kind, rest[0], [LIST[at] for at in rest[1]]) if kind == "search" else (kind, *rest)
        for kind, *rest in events
    ]
    assert acts(gathered(small, tmp_path, claude([*ASKED, *events])))[0] == expected


def test_a_resumed_session_is_read_once_with_what_followed_in_either_file(small, tmp_path):
    write_lines(tmp_path / "logs" / "one.jsonl", claude(ASKED))
    write_lines(tmp_path / "logs" / "two.jsonl", claude([*ASKED, SAID]))
    assert acts(gather(small, f"transcripts:{tmp_path / 'logs'}")) == [{RETRY: "cited"}]


def test_logs_without_session_ids_are_a_session_each(small, tmp_path):
    for at, name in enumerate(("one", "two")):
        lines = claude([("search", "signing secrets", LIST)], start=30 * at)
        write_lines(tmp_path / "logs" / f"{name}.jsonl", [{**line, "sessionId": None} for line in lines])
    assert gather(small, f"transcripts:{tmp_path / 'logs'}").record["clients"] == 2


def test_a_beginning_that_two_ids_share_names_neither(small, tmp_path):
    events = [*ASKED, ("search", "lunch menu", LIST[:2]), ("say", "a1b2c3d4 has it")]
    assert acts(gathered(small, tmp_path, claude(events))) == [{}, {}]


def test_what_was_read_stays_when_the_transcript_is_gone_and_nothing_changes_twice(small, tmp_path):
    source = f"transcripts:{tmp_path / 'logs'}"
    first = write_lines(tmp_path / "logs" / "one.jsonl", claude([("search", "how do keys rotate", LIST)]))
    found = gather(small, source)
    assert found.changed
    found.write()
    before = found.path.read_bytes()
    assert not gather(small, source).changed
    first.unlink()
    write_lines(tmp_path / "logs" / "two.jsonl", claude([("search", "other words", LIST)], session="s2"))
    again = gather(small, source)
    again.write()
    assert len(impressions(again)) == 2
    assert set(before.splitlines()) < set(found.path.read_bytes().splitlines())
    assert again.record["without_text"] == 0  # one is a query of the data set, the other stands in the transcript


def test_texts_are_written_only_where_asked_and_without_secrets(small, tmp_path):
    lines = claude([("search", "plain words", LIST), ("ask", "x"), ("search", "password: hunter22", LIST)])
    kept = gathered(small, tmp_path, lines, keep_queries=True)
    assert [line.get("user_query") for line in impressions(kept)] == ["plain words", None]
    kept.path.write_text("")
    kept.path.chmod(0o644)
    kept.write()
    assert kept.path.stat().st_mode & 0o777 == 0o600
    kept.path.unlink()
    plain = gathered(small, tmp_path, lines)
    assert b"plain words" not in "".join(plain.lines).encode()
    assert b"plain words" in b"".join(plain.held.lines)


@tabled
def test_the_other_systems_servers(small, tmp_path, name, args, answer, opening):
    lines = claude([("call", name, args), ("call", *opening)])
    lines[1]["message"]["content"][0]["content"] = [{"type": "text", "text": json.dumps(answer)}]
    found = gathered(small, tmp_path, lines)
    (line,) = impressions(found)
    assert shown(line) == [one["id"] for one in ENTRIES]
    assert acted(line) == ({} if opening[0] == "Read" else {RETRY: "opened"})
    assert line["policy"] in {json.loads(text)["policy"] for text in found.lines if "configuration" in text}


# What programs write in a person's place

TITLE = ENTRIES[0]["title"]


@tabled
def test_what_a_program_writes_is_no_question(small, tmp_path, content, fields):
    """The title is cited in answer to the person's question, and not because a program's text named it."""
    lines = claude([*ASKED, ("ask", ""), ("say", f"See \u201c{TITLE}\u201d.")])
    lines[3] = {**lines[3], **fields, "message": {"role": "user", "content": content}}
    assert acts(gathered(small, tmp_path, lines)) == [{KEYS: "cited"}]


@tabled
def test_what_a_person_writes_beside_a_program_is_a_question(small, tmp_path, content):
    lines = claude([*ASKED, ("say", f"We do \u201c{TITLE}\u201d.")])
    lines[0]["message"]["content"] = content
    assert acts(gathered(small, tmp_path, lines)) == [{}]


# Times, 2026-07-22T09:00:00Z and later, which `date -u +%s` gives as 1784710800

START = 1784710800


def traced(kind, begin, end, agent_end):
    """A search for x y inside an agent's span, whose answer names the last entry."""
    times = {"search": (begin, end), "agent": (begin, agent_end)}
    if kind == "openinference":
        documents = {
            f"retrieval.documents.{at}.document.{key}": value
            for at, one in enumerate(ENTRIES)
            for key, value in {"id": one["id"], "score": 0.5, "content": one["text"]}.items()
        }
        search = {"input.value": "x y", "openinference.span.kind": "RETRIEVER", **documents}
        agent = {"openinference": {"span": {"kind": "AGENT"}}, "input": {"value": "hello"}}
        agent |= {"output": {"value": SAID[1]}}
        return [
            {"context": {"trace_id": "t", "span_id": key}, "parent_id": around, "attributes": has}
            | dict(zip(("start_time", "end_time"), times[key], strict=True))
            for key, around, has in (("search", "agent", search), ("agent", None, agent))
        ]
    records = json.dumps([{"id": one["id"], "score": 0.5} for one in ENTRIES])
    said = json.dumps([{"role": "assistant", "parts": [{"content": SAID[1]}]}])
    search = {"operation.name": "search_memory", "memory.query.text": "x y", "memory.records": records}
    agent = {"operation.name": "invoke_agent", "output.messages": said}
    spans = []
    for key, around, has in (("search", "agent", search), ("agent", "", agent)):
        attributes = [{"key": f"gen_ai.{name}", "value": {"stringValue": value}} for name, value in has.items()]
        span = {"traceId": "t", "spanId": key, "parentSpanId": around, "attributes": attributes}
        spans.append(span | dict(zip(("startTimeUnixNano", "endTimeUnixNano"), times[key], strict=True)))
    return [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}]


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("form", [int, float, str])
@pytest.mark.parametrize("kind", ["otel", "openinference"])
def test_times_are_numbers_of_any_unit_and_form(small, tmp_path, kind, unit, form):
    records = traced(kind, *(form((START + late) * unit) for late in (0, 2, 9)))
    (line,) = impressions(gathered(small, tmp_path, records, kind))
    assert line["timestamp"].startswith("2026-07-22T09:00:00")
    assert acted(line) == {RETRY: "cited"}


@pytest.mark.parametrize("kind", ["otel", "openinference"])
def test_an_answer_follows_the_searches_inside_its_span_whatever_its_clock_says(small, tmp_path, kind):
    found = gathered(small, tmp_path, traced(kind, START, START + 2, START + 1), kind)
    assert acts(found) == [{RETRY: "cited"}]


def test_the_names_of_the_schema_are_read_as_protobuf_allows(small, tmp_path):
    text = json.dumps(traced("otel", START, START + 2, START + 9))
    for name in ("resourceSpans", "scopeSpans", "startTimeUnixNano", "stringValue", "parentSpanId", "traceId"):
        text = text.replace(name, "".join(f"_{c.lower()}" if c.isupper() else c for c in name))
    found = gathered(small, tmp_path, json.loads(text.replace("spanId", "span_id")), "otel")
    assert acts(found) == [{RETRY: "cited"}]


@pytest.mark.parametrize("begin", ["soon", None, 0, True, 10**25, [START, 0]])
def test_a_search_without_a_time_says_that_it_is_its_time(small, tmp_path, begin):
    found = gathered(small, tmp_path, traced("otel", begin, begin, begin), "otel")
    assert found.record["rejected"] == {TIMELESS: 1}


# Odd input


@pytest.mark.parametrize("kind", list(KINDS))
def test_garbage_ends_in_a_sentence(small, tmp_path, kind):
    assert impressions(gathered(small, tmp_path, DATA["GARBAGE"], kind)) == []


def test_what_cannot_be_read_is_named(small, tmp_path):
    (tmp_path / "empty").mkdir()
    for source, why in (
        ("transcript", r"'transcript'.*transcripts"),
        (f"otel:{tmp_path / 'none'}", "does not exist"),
        (f"otel:{tmp_path / 'empty'}", "empty"),
        ("otel", "otel:PATH"),
    ):
        with pytest.raises(ConfigError, match=why):
            gather(small, source)
    (tmp_path / "mine.jsonl").write_text('{"schema_version": 1}\n')
    with pytest.raises(DataError, match="--from"):
        gathered(small, tmp_path, claude(ASKED), log=tmp_path / "mine.jsonl")


def test_the_programs_own_places_are_looked_at(small, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    with pytest.raises(ConfigError, match=r"claude/projects"):
        gather(small, "transcripts")
    write_lines(tmp_path / "claude" / "projects" / "x" / "one.jsonl", claude([("search", "x y", LIST)]))
    assert len(impressions(gather(small, "transcripts"))) == 1


def test_dry_run_shows_and_writes_nothing(small, tmp_path):
    path = write_lines(tmp_path / "one.jsonl", claude([("search", "x y", LIST)]))
    words = ["learn", small.path, "--from", f"transcripts:{path}", "--dry-run"]
    shown = done(*words).stdout
    assert '"object_id":"a1b2c3d4-0003"' in shown and " 1 searches" in shown
    assert "x y" not in shown
    assert not (small.path / "feedback.transcripts.jsonl").exists()
    assert document(*words)["searches"] == 1
    done("learn", small.path, "--dry-run", code=2)


def test_a_tree_is_flat_to_its_ninth_name():
    assert _flat(json.loads('{"a":' * 12 + "7" + "}" * 12)) == {".".join("a" * 9): {"a": {"a": {"a": 7}}}}


@pytest.mark.parametrize("span", [{"traceId": "0xt"}, {"context": {"trace_id": "t"}}, {"context.trace_id": "t"}])
def test_a_trace_has_its_id_in_every_spelling(span):
    placed = _placed({**span, "spanId": "1", "parentSpanId": "2"}, ("", "", None, None, ""))
    assert (placed.trace, placed.key, placed.parent) == ("t", "t/1", "t/2")


def test_a_question_comes_before_the_searches_that_it_led_to():
    around = TraceSpan(ANSWER, "", "how do keys rotate", "so", "c", "1", "t", "", 1.0, 9.0)
    search = TraceSpan(SEARCH, "", "rotate keys", None, "c", "2", "t", "1", 2.0, 3.0)
    texts = [getattr(one, "text", "search") for one in _events([around, search], None)]
    assert texts == ["how do keys rotate", "search", "so"]


def test_places_that_a_log_states_are_told_as_given():
    bias = SimpleNamespace(exponent=1.0, error=0.1, source="given")
    case = SimpleNamespace(learned=SimpleNamespace(bias=bias), log=SimpleNamespace(census=SimpleNamespace(acts=9)))
    assert _places(case)["given"] is True
