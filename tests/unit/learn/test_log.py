"""The log: what is written, what is read, and what is set aside."""

import gzip
import json
from collections import Counter

import numpy as np
import pytest
from shared import tabled, vault_with, write_lines

from steelyard import Entry, Filters, Query, Searcher, find_system
from steelyard.base.errors import ConfigError, DataError
from steelyard.config import policy_of
from steelyard.feedback import ACTIONS, Explore, FeedbackLog, append, append_act
from steelyard.memory.query import valid_at
from steelyard_eval.datasets.logs import Action
from steelyard_eval.extensions.usage.transcripts import read_ubi
from steelyard_eval.learn import searchers
from steelyard_eval.learn.counts import CODE, KINDS
from steelyard_eval.learn.log_reader import MOST_A_DAY, DatasetIndex, read_log
from steelyard_eval.learn.searchers import SeenFilter

NOW = 1_760_000_000.0
DAY = "2025-10-01T10:00:00Z"
CONFIG = find_system("bm25").config()


def impression(query="q1", entries=("a", "b", "c"), **fields):
    hits = [{"object_id": name, "position": at} for at, name in enumerate(entries, 1)]
    line = {"schema_version": 1, "timestamp": DAY, "query_id": query, "policy": "p", "hits": hits, "actions": []}
    return {**line, **fields}


def act(name, action="clicked"):
    return {"object_id": name, "action_name": action}


def known(extensible=False):
    texts = {"q1": "one", "q2": "two"}
    by_id = {name: at for at, name in enumerate(texts)}
    by_text = {text: at for at, text in enumerate(texts.values())}
    return DatasetIndex({name: at for at, name in enumerate("abcdefgh")}, by_id, by_text, texts, extensible)


def log(tmp_path, lines, **options):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in lines))
    return read_log(path, known(**options), NOW)


def counted(found):
    """(query, entry, place from 1) -> (shows, acts)."""
    hits, whole = found.hits, {}
    rows = zip(hits.query, hits.entry, hits.place + 1, hits.shown, hits.acts.sum(1), strict=True)
    for *key, shown, acts in rows:
        before = whole.get(tuple(key), (0, 0))
        whole[tuple(key)] = before[0] + shown, before[1] + acts
    return whole


def aside(found):
    return dict(found.census.rejected)


# Reading


def test_shows_and_acts_are_counted_by_query_entry_and_place(tmp_path):
    lines = [
        impression(client_id="x", actions=[act("b"), act("c", "dismissed")]),
        impression(client_id="y", actions=[act("b", "accepted")]),
        impression("anything", user_query="two", client_id="z", entries=("b",)),
    ]
    found = log(tmp_path, lines)
    assert counted(found) == {(0, 0, 1): (2, 0), (0, 1, 2): (2, 2), (0, 2, 3): (2, 1), (1, 1, 1): (1, 0)}
    assert (found.census.impressions, found.census.acts, aside(found)) == (3, 3, {})
    assert found.searches == {"p": 3}
    # unknown entries count as places that differ: 8 stands for them
    assert counted(log(tmp_path, [impression(entries=("zz", "a"))])) == {(0, 8, 1): (1, 0), (0, 0, 2): (1, 0)}
    # one act about every entry
    useless = log(tmp_path, [impression(actions=[{"action_name": "none_useful"}])])
    assert useless.hits.acts[:, CODE["none_useful"]].tolist() == [0.1, 0.1, 0.1]
    assert useless.census.acts == 1  # somebody did one thing


def test_clients_beyond_those_that_are_told_apart_count_as_one(tmp_path, monkeypatch):
    """Two are told apart; 38 that come later count as one client, which may always have 20 searches."""
    monkeypatch.setattr(searchers, "MOST_CLIENTS", 2)
    names = ["ann", "bob", *(f"c{at}" for at in range(38))]
    found = log(tmp_path, [impression(client_id=name, actions=[act("a")]) for name in names])
    assert sorted(found.clients.values()) == [1, 1, 38]
    assert counted(found)[0, 0, 1] == pytest.approx((1 + 1 + 20, 1 + 1 + 20))


def test_acts_may_follow_their_impression(tmp_path):
    waiting = impression("e1", user_query="one", client_id="x")
    del waiting["actions"]
    later = {"schema_version": 1, "timestamp": DAY, "query_id": "e1", "actions": [act("a", "cited")]}
    found = log(tmp_path, [waiting, later, {**later, "query_id": "lost"}])
    assert counted(found)[0, 0, 1] == (1, 1)
    assert aside(found) == {"acts on a list that is empty, not in the log, or long past": 1}


@tabled
def test_what_breaks_a_rule_is_set_aside_with_its_line(tmp_path, line, rule):
    found = log(tmp_path, [impression(client_id="x"), line if isinstance(line, str) else impression(**line)])
    assert [lines[0] for _, own, lines in found.census.ordered if rule in own] == [2]
    assert counted(found)[0, 0, 1][0] in (1, 2)


def test_a_line_of_more_than_a_million_bytes_is_set_aside(tmp_path):
    found = log(tmp_path, ["x" * 1_000_001 + "\n"])
    assert [lines for _, own, lines in found.census.ordered if "is longer than 1,000,000 bytes" in own] == [[1]]


def test_a_client_counts_once_a_query_and_day_and_not_without_end(tmp_path):
    same = impression(client_id="x", actions=[act("a")])
    next_day = impression(client_id="x", timestamp="2025-10-02T10:00:00Z")
    bot = [impression(f"b{at}", user_query=f"text {at}", client_id="bot") for at in range(MOST_A_DAY + 5)]
    found = log(tmp_path, [same] * 10_000 + [next_day] + bot, extensible=True)
    assert counted(found)[0, 0, 1] == (2, 1)
    rules = aside(found)
    assert sum(count for rule, count in rules.items() if "repeats" in rule) == 999
    assert sum(count for rule, count in rules.items() if "(a program)" in rule) == 9_000 + 5


def test_a_search_that_was_narrowed_is_a_query_of_its_own(tmp_path):
    """The same words in one project and in all of them show other lists; texts that are no queries of the set are
    learned from where they can be embedded.
    """
    narrowed = impression("e1", user_query="new words", client_id="1", filter={"project": "api"})
    lines = [impression("e1", user_query="new words", client_id="0"), narrowed, {**narrowed, "client_id": "2"}]
    lines.append(impression("e2", user_query="other", filter={"colour": "red"}))
    found = log(tmp_path, lines, extensible=True)
    added = [(text, str(filters)) for text, filters in found.added]
    assert added == [("new words", ""), ("new words", "project is 'api'")]
    assert {(query, place): shows for (query, _, place), (shows, _) in counted(found).items()} == {
        (query, place): shows for query, shows in ((2, 1), (3, 2)) for place in (1, 2, 3)
    }
    assert any("has a filter that is none" in rule for rule in aside(found))


def test_a_search_that_is_logged_says_how_it_was_narrowed(tmp_path):
    vault = vault_with(Entry("a", text="token one", project="p"), Entry("b", text="token two", project="q"))
    searcher = Searcher(vault, find_system("fts").config())
    writer = FeedbackLog(tmp_path / "log.jsonl", searcher.config, clock=lambda: 1.79e9)
    narrowed = Filters.of({"project": "p"})
    # of the last two rules one is enough: JSON has no form for them
    for asked in (Query("token", filters=narrowed), Query("token"), Query("token", filters=valid_at(1.79e9))):
        writer.shown(searcher.search(asked), "c")
    filters = [line.get("filter") for line in lines(tmp_path / "log.jsonl") if "hits" in line]
    assert filters == [{"project": {"any": ["p"]}}, None, None]
    assert Filters.of(filters[0]) == narrowed


def test_a_log_may_be_compressed_and_a_broken_one_is_an_error(tmp_path):
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress((json.dumps(impression()) + "\n").encode()))
    assert read_log(path, known(), NOW).census.impressions == 1
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"feedback log .*name"):
        read_log(path, known(), NOW)
    with pytest.raises(DataError, match="No such file"):
        read_log(tmp_path / "none", known(), NOW)


def test_the_largest_client_is_counted_apart(tmp_path):
    """Of 100 searches of 25 clients on 25 days a robot adds 40 on the last one: its weight brings it to 20."""

    def on(day, *args, **fields):
        return impression(*args, timestamp=f"2025-09-{day:02}T10:00:00Z", **fields)

    searches = [on(1 + at // 4, "q1", "abcdefgh"[at % 8], client_id=f"c{at % 25}") for at in range(100)]
    robot = [on(1 + at, query, "ab", client_id="r", user_query="") for at in range(20) for query in ("q1", "q2")]
    found = log(tmp_path, searches + robot)
    fold, largest, shown = found.hits.fold, found.hits.largest, found.hits.shown
    assert len(set(fold.tolist())) > 1
    assert shown[largest].sum() == pytest.approx(2 * 20)  # two entries a search
    assert shown.sum() == pytest.approx(100 + 40)


def test_hashes_are_remembered():
    seen, rng = SeenFilter(), np.random.default_rng(0)
    hashes = rng.integers(0, 2**63, 50_000).astype(np.uint64)
    assert seen.first(hashes).mean() > 0.9999
    assert not seen.first(hashes).any()
    assert seen.first(np.array([1, 1, 2], dtype=np.uint64)).tolist() == [True, False, True]


def test_the_actions_of_both_packages_are_the_same():
    assert ACTIONS == Action.__args__ == KINDS


# Writing


@pytest.fixture
def searcher():
    with vault_with(*(Entry(id_, title=f"{id_} key rotation", text=f"rotate {id_}") for id_ in "abcdef")) as vault:
        yield Searcher(vault, CONFIG, clock=lambda: NOW, explore=Explore(0.0))


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_was_shown_and_done_is_read_back(tmp_path, searcher):
    path = tmp_path / "log.jsonl"
    writer = FeedbackLog(path, CONFIG, clock=lambda: NOW - 86_400)
    result = searcher.search("rotate")
    first = writer.shown(result, client="me")
    writer.act(first, result.hits[0].entry.id, "cited", client="me")
    policy, shown, done = lines(path)
    assert policy["policy"] == shown["policy"] == policy_of(CONFIG)
    assert [hit["object_id"] for hit in shown["hits"]] == [hit.entry.id for hit in result.hits]
    assert done["query_id"] == shown["query_id"] == first
    found = read_log(path, known(extensible=True), NOW)
    assert (found.census.impressions, found.census.acts, aside(found)) == (1, 1, {})
    FeedbackLog(path, CONFIG).shown(result)
    assert sum("configuration" in one for one in lines(path)) == 1


@tabled
def test_acts_that_cannot_be_are_refused(tmp_path, searcher, query, entry, action, message):
    path = tmp_path / "log.jsonl"
    known_id = FeedbackLog(path, CONFIG).shown(searcher.search("rotate"))
    with pytest.raises(ConfigError, match=message):
        append_act(path, query or known_id, entry, action)
    assert len(lines(path)) == 2


def test_a_killed_writer_loses_the_line_it_was_writing_at_most(tmp_path):
    path = tmp_path / "log.jsonl"
    append(path, [impression(client_id="x")])
    with path.open("a") as stream:
        stream.write('{"schema_version": 1, "timest')
    append(path, [impression(client_id="y")])
    found = read_log(path, known(), NOW)
    assert found.census.impressions == 2
    assert list(found.census.first.values()) == [[2]]


def test_an_interleaved_list_names_who_placed_each_hit(tmp_path, searcher):
    other = find_system("bm25").config(9)
    explored = Searcher(searcher.store, CONFIG, explore=Explore(1.0, other, seed=3), clock=lambda: NOW)
    result = explored.search("rotate")
    assert set(result.placed_by) == {policy_of(CONFIG), policy_of(other)}
    assert len(result.placed_by) == len(result.hits)
    assert not searcher.search("rotate").placed_by


def test_a_duel_is_won_by_the_ranking_whose_entries_are_used(tmp_path):
    hits = [{"object_id": "ab"[at], "position": at + 1, "interleaved": "pr"[at]} for at in range(2)]
    # the last one is the first client's again, on the same day
    asked = [(f"c{at}", name) for at, name in enumerate(["b"] * 4 + ["a", None])] + [("c0", "a")]
    path = tmp_path / "log.jsonl"
    append(path, [impression(hits=hits, client_id=c, actions=[act(name)] if name else []) for c, name in asked])
    every, own = read_log(path, known(), NOW).turns
    assert (own.other, own.wins, own.losses, own.ties) == ("r", 4, 1, 1)
    assert (every.wins, every.p) == (4, own.p)
    assert own.p == pytest.approx(2 * (5 + 1) / 32)


# Others' formats


def test_ubi(tmp_path):
    query = UBI_QUERY | {"client_id": "c", "timestamp": DAY, "application": "shop"}
    queries = write_lines(tmp_path / "q.jsonl", [{"_source": query}])
    event = {"query_id": "7", "event_attributes": {"object": HIT, "position": {"ordinal": 2}}}
    events = write_lines(tmp_path / "e.jsonl", [{**event, "action_name": name} for name in ("click", "scroll")])
    [session] = read_ubi([queries, events], None, "", Counter())
    search, act = session.events
    assert (search.key, search.query, search.hits) == ("7", "two", ("a", "b"))
    assert (session.client, search.engine) == ("c", "shop")
    assert (act.names, act.action, act.search) == (("b",), "clicked", "7")


HIT = {"object_id": "b"}
UBI_QUERY = {"query_id": "7", "user_query": "two", "query_response_hit_ids": ["a", "b"]}


@tabled
def test_what_ubi_has_and_a_log_cannot_hold_is_counted(tmp_path, query, event, acts, reasons):
    click, left_out = {"query_id": "7", "action_name": "click", "event_attributes": {"object": HIT}}, Counter()
    path = write_lines(tmp_path / "u.jsonl", [UBI_QUERY | query, click | event])
    found = [session.events for session in read_ubi([path], None, "", left_out)]
    assert [len(events) - 1 for events in found] == ([] if acts is None else [acts])
    assert sorted(reason.split()[0] for reason in (+left_out).elements()) == reasons
    assert all(events[0].key != "None" for events in found)


@pytest.mark.parametrize("time", [1790841600, 1790841600000, "1790841600000", "2026-10-01 08:00:00", 1790841600e6])
def test_times_of_others_become_ours(tmp_path, time):
    """`date -u -d @1790841600` is the first of October, eight o'clock."""
    row = {**UBI_QUERY, "timestamp": time, "created_at": time, "entry_id": "a", "action": "accepted"}
    path = write_lines(tmp_path / "rows.jsonl", [row])
    (session,) = read_ubi([path], None, "", Counter())
    assert session.events[0].time == 1790841600
