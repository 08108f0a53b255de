"""Explaining one query: the numbers add up, equal live search, and what was missed is found."""

from dataclasses import replace
from functools import reduce
from operator import add

import pytest
from shared import STARTER, beside, document, done, tabled, write_set

from steelyard import Explanation, find_system, parse_strategy
from steelyard.base.errors import ConfigError
from steelyard.finish import parse_stages
from steelyard.testing.fusions import recomputed
from steelyard_eval.datasets import load
from steelyard_eval.explain import explain
from steelyard_eval.explain.text import _changes, _listed, _signal
from steelyard_eval.recording.workspace import Workspace

HARM = "<script>alert(1)</script>\x1b[31m\u202e"
ENTRIES = beside(__file__)["ENTRIES"]
SOLERI = (
    "weighted_sum(0.25*tfidf, 0.15*cosine, 0.15*severity, 0.15*recency(half_life=365d), 0.15*tags, 0.15*domain)"
)


@pytest.fixture(scope="module")
def space():
    return Workspace.open(load(STARTER))


def dataset(folder, entries, query, qrels=None):
    """A data set of one query q in a folder."""
    labels = "".join(f"q 0 {id_} {grade}\n" for id_, grade in (qrels or {}).items())
    about = {"text_for_embedding": "{title}", "as_of": "2026-11-01"}
    return load(write_set(folder, entries, [{"id": "q", **query}], labels, **about))


def only(found):
    return found.record["configurations"][0]


# The numbers


@tabled
@pytest.mark.parametrize("query", ["q01", "q05", "q20"])
def test_the_list_is_what_live_search_answers_and_contributions_in_order_give_its_scores(space, query, strategy):
    config = find_system("plain").config(10, space.model).with_strategy(parse_strategy(strategy))
    entries = only(explain(space, query, config))["entries"]
    asked = next(q for q in space.dataset.with_known_intents(space.dataset.queries) if q.id == query)
    hits = space.searcher(config).search(asked).hits
    assert hits
    assert [(e["rank"], e["id"], e["score"]) for e in entries] == [(h.rank, h.entry.id, h.score) for h in hits]
    for entry in entries:  # to the last bit
        terms = entry["contributions"]
        assert all(term["contribution"] == term["weight"] * term["value"] for term in terms)
        total = reduce(add, (term["contribution"] for term in terms))
        assert total * (entry["factor"]["value"] if entry["factor"] else 1.0) == entry["score"]


def test_a_factor_is_shown_as_a_factor_and_a_list_that_was_scored_again_has_both_scores(space):
    """Signals add up to what was fused, so without it they would not add up to anything that is shown."""
    found = explain(space, "q01", "rrf(vector, fts, bonus=times(0.25))")
    assert {entry["factor"]["value"] for entry in only(found)["entries"]} <= {1.0, 1.25}
    assert "x1.25" in str(found) and "fused" not in str(found)
    config = find_system("plain").config(10, space.model).with_strategy(parse_strategy("rrf(vector, fts)"))
    shown = explain(space, "q01", replace(config, finish=parse_stages(["rescore(bm25)", "cut(10)"])))
    heads = next(line for line in str(shown).splitlines() if line.split()[:1] == ["rank"]).split()
    assert {"score", "fused"} <= set(heads)


# What was missed


def test_every_relevant_entry_outside_the_list_has_its_reason(tmp_path):
    """FTS ranks a, b, c by how often the word stands there; the depth is 2 and the list has one place."""
    query = {"text": "cache", "filter": {"project": "p"}}
    made = dataset(tmp_path, ENTRIES["missed"], query, dict.fromkeys("abcde", 1))
    config = find_system("fts").config(1)
    config = replace(config, retrievers={"fts": replace(config.retrievers["fts"], depth=2)})
    found = explain(made, "q", config, embedder="none")

    where = {m["id"]: (m["where"], m["rank"], m["why"]) for m in only(found)["missing"]}
    assert where == {
        "b": ("below_cut", 2, "rank 2, the list ends at 1; place 2 in fts"),
        "c": ("beyond_depth", None, "place 3 in fts"),
        "d": ("not_returned", None, 'not found by fts (holds none of "cache")'),
        "e": ("out_of_scope", None, "outside the scope: project is 'other', and the query asks: project is 'p'"),
    }
    assert found.record["query"]["in_scope"] == 4
    assert "\nfts is read only to place 2" in str(found)  # once, below the table


def test_what_was_found_and_not_ranked_and_who_was_not_asked_are_told_from_what_was_not_found(tmp_path):
    """FTS5's Porter makes one stem of both words and Snowball two; the second tier ranks what BM25 returned."""
    made = dataset(tmp_path / "a", [{"id": "a", "text": "skies"}], {"text": "ski"}, {"a": 1})
    found = explain(made, "q", "tiered(fts, min_results=3, then=bm25)", embedder="none")

    assert only(found)["entries"] == []
    lost = only(found)["missing"][0]
    assert (lost["where"], lost["lists"]["fts"]["position"]) == ("not_ranked", 1)
    assert "nothing was returned" in str(found)
    assert "bm25" in only(found)["emptied"] and "fts" not in only(found)["emptied"]  # FTS found its word

    entries = [{"id": "a", "text": "cache"}, {"id": "b", "text": "x"}]
    made = dataset(tmp_path / "b", entries, {"text": "cache"}, {"b": 1})
    found = only(explain(made, "q", "tiered(fts, min_results=1, then=bm25)", embedder="none"))
    assert 'none of "cache"' in found["missing"][0]["why"]
    assert found["skipped_retrievers"] == ["bm25"]


@tabled
def test_an_empty_list_names_the_words_that_no_entry_has(tmp_path, text, config, why):
    made = dataset(tmp_path, [{"id": "a", "text": "rotate keys"}], {"text": text}, {"a": 1})
    assert why in " ".join(str(explain(made, "q", config, embedder="none")).split())


def test_the_words_of_the_query_that_an_entry_holds_are_named(tmp_path):
    """By their stems; "the" is a stop word, which neither looks for beside others."""
    made = dataset(tmp_path, ENTRIES["holding"], {"text": "rotating the cache twice"}, {"a": 1})
    found = explain(made, "q", "rrf(fts, bm25)", entry="a", embedder="none")
    held = ["rotating", "cache"]
    assert found.record["entry"]["configurations"][0]["matching"] == {"bm25": held, "fts": held}
    assert "\nwords of the query that bm25 finds in it: 'rotating', 'cache'\n" in str(found)


def test_the_entry_asked_for_is_a_tree_or_a_reason(space):
    ranked = only(explain(space, "q05", "rrf(fts, vector)"))["entries"][0]
    found = explain(space, "q05", "rrf(fts, vector)", entry=ranked["id"]).record["entry"]["configurations"][0]
    stranger = next(e.id for e in space.dataset.entries if e.project == "rental-api")
    absent = explain(space, "q05", "rrf(fts, vector)", entry=stranger)
    assert (found["where"], found["rank"]) == ("listed", 1)
    assert recomputed(tree(found["explanation"])) == ranked["score"]
    assert absent.record["entry"]["configurations"][0]["explanation"] is None
    assert "project is 'rental-api'," in str(absent)


def tree(node):
    parts = tuple(tree(part) for part in node.get("parts", ()))
    return Explanation(node["value"], node["text"], parts, node.get("combine", "given"))


# Against another configuration


def test_who_moved_and_by_which_signal(tmp_path):
    """Texts are equal; importance is 1.0, 0.6, 0.2 of ten; of the query's two tags a has none, b both, c one.

    Before, 1*importance + 0*tags: a 1, b 0.6, c 0.2; the range is 0.8. After, 0.2*importance + 0.8*tags:
    a 0.2 + 0, b 0.12 + 0.8, c 0.04 + 0.4; the range is 0.92 - 0.2 = 0.72. Both weights differ, so that shares of
    the ranges are compared. b and c passed a. Importance puts b ahead of a by -0.4 / 0.8 = -1/2, then by
    -0.08 / 0.72 = -1/9, tags by 0, then by 0.8 / 0.72 = 10/9: tags did more. c: importance -1, then
    -0.16 / 0.72 = -2/9, which holds it back still, tags 0, then 5/9: tags put it ahead. For a
    it is the mean of both, with the other sign.
    """
    before, after = (f"weighted_sum({i}*importance, {t}*tags)" for i, t in ((1, 0), (0.2, 0.8)))
    made = dataset(tmp_path, ENTRIES["moved"], {"text": "cache", "tags": ["x", "y"]}, {"b": 1})
    found = explain(made, "q", before, after, embedder="none")
    moves = {c["id"]: c for c in found.record["changes"]}
    assert [(i, m["kind"], m["before"], m["after"], m["by"]) for i, m in moves.items()] == [
        ("b", "moved", 2, 1, "tags"),
        ("c", "moved", 3, 2, "tags"),
        ("a", "moved", 1, 3, "tags"),
    ]
    assert moves["a"]["changes"] == pytest.approx({"importance": 1 / 6 - 3 / 4, "tags": -5 / 6})
    assert moves["b"]["changes"] == pytest.approx({"importance": -1 / 9 + 1 / 2, "tags": 10 / 9})
    assert moves["c"]["changes"] == pytest.approx({"importance": -2 / 9 + 1, "tags": 5 / 9})
    assert moves["a"]["standing"] == pytest.approx({"before": 3 / 4, "after": 1 / 6 - 5 / 6})
    assert [line.split(maxsplit=4)[2:] for line in str(found).splitlines()[-3:]] == [
        ["b", "1", "tags"],
        ["c", "-", "tags"],
        ["a", "-", "tags"],  # it has none, so what lifts others took it down
    ]


@pytest.mark.parametrize("against", ["bm25", "rrf(fts, vector, bonus=times(0.1))", SOLERI, "vector"])
def test_the_changes_of_the_signals_add_up_to_the_change_of_the_entry(space, against):
    changes = explain(space, "q01", "rrf(bm25, vector)", against).record["changes"]
    compared = [c for c in changes if c["standing"]]
    assert compared
    for change in compared:
        moved = change["standing"]["after"] - change["standing"]["before"]
        assert sum(change["changes"].values()) == pytest.approx(moved, abs=1e-12)


def test_who_entered_and_who_left_say_where_they_were(tmp_path):
    """Importance prefers b; BM25 prefers a, which holds both words and one of them three times."""
    made = dataset(tmp_path, ENTRIES["entered"], {"text": "cache word"}, {"b": 1})
    entered, left = explain(made, "q", "importance", "bm25", limit=1, embedder="none").record["changes"]
    places = [(c["id"], c["kind"], c["before"], c["after"], c["why"].partition(",")[0]) for c in (entered, left)]
    assert places == [("a", "entered", 2, 1, "rank 2"), ("b", "left", 1, 2, "rank 2")]
    # of two, the range is their distance: importance put b ahead by the whole of it, then BM25 a
    assert entered["changes"] == pytest.approx({"bm25": 1, "importance": 1})
    assert left["changes"] == pytest.approx({"bm25": -1, "importance": -1})


def test_an_entry_scored_by_one_side_alone_has_a_reason_and_what_its_score_is_of(tmp_path):
    """The word of the query stands in `why`, which EchoVault's index covers and a title does not hold."""
    entries = [{"id": "a", "text": "cache"}, {"id": "b", "text": "x", "source": "cache"}]
    made = dataset(tmp_path / "set", entries, {"text": "cache"}, {"b": 1})
    found = explain(made, "q", "fts", "echovault", embedder="none")
    entered = next(c for c in found.record["changes"] if c["id"] == "b")
    assert (entered["kind"], entered["by"], entered["standing"]) == ("entered", "fts", None)
    assert 'none of "cache"' in entered["why"]
    assert 'none of "cache")' in " ".join(str(found).split())
    # A list without entries is compared: of these words Porter makes one stem, and Snowball two.
    made = dataset(tmp_path / "stop", [{"id": "a", "text": "skies"}], {"text": "ski"}, {"a": 1})
    (change,) = explain(made, "q", "bm25", "fts", embedder="none").record["changes"]
    assert (change["kind"], change["by"]) == ("entered", "fts")


# How it is shown


def test_harmful_text_stays_text_in_the_terminal_and_in_a_notebook(tmp_path):
    mark = "<script>alert(1)</script>"
    entries = [{"id": mark, "title": f"{HARM} " * 9, "text": f"cache {HARM}", "project": HARM}]
    entries += [{"id": "b", "text": f"{HARM} other", "title": HARM, "project": HARM}]
    made = dataset(tmp_path, entries, {"text": f"cache {HARM}", "filter": {"project": HARM}}, {mark: 1, "b": 2})
    for against, entry in ((None, mark), ("bm25", mark), ("bm25", None)):
        found = explain(replace(made, name=HARM), "q", "fts", against, embedder="none", entry=entry, limit=1)
        text, page = str(found), found._repr_html_()
        assert "alert(1)" in text and "alert(1)" in page
        assert not {"\x1b", "\u202e"} & {*text, *page, *repr(found)}
        assert "<script" not in page
        assert max(map(len, text.splitlines())) <= 110  # escapes are longer than what they stand for


# Words and errors


def test_a_strategy_loses_what_the_data_set_cannot_feed_and_fails_when_nothing_is_left(space):
    plain = replace(space, embedder=None)
    assert only(explain(plain, "q01", "weighted_sum(0.5*fts, 0.5*vector)"))["strategy"] == "weighted_sum(0.5*fts)"
    with pytest.raises(ConfigError, match="needs vector"):
        explain(plain, "q01", "vector")


def test_a_weights_file_keeps_its_limit_unless_one_is_given(tmp_path):
    find_system("plain").config(4, "minilm").save(tmp_path / "w")
    for words, limit in (((), 4), (("--limit", 2), 2)):
        found = document("explain", STARTER, "q01", tmp_path / "w", *words)
        assert len(found["configurations"][0]["entries"]) == limit
    both = document("explain", STARTER, "q01", "--against", tmp_path / "w")
    assert both["configurations"][1]["limit"] == 4


@tabled
def test_bad_input_is_one_message_and_code_2(words, part):
    result = done("explain", STARTER, *words, code=2)
    assert (result.stdout, part in result.stderr) == ("", True)


def test_an_entry_beyond_the_depth_of_one_retriever_is_not_said_to_have_no_vector():
    """The place is what `explain workshop q005 vector` says of the same entry."""
    ask = ("explain", STARTER.parent / "workshop", "q005"), ("--entry", "quay-backups-restic")
    alone, both = (
        document(*ask[0], one, *ask[1])["entry"]["configurations"][0]
        for one in ("vector", "weighted_sum(0.5*bm25, 0.5*vector)")
    )
    assert alone["where"] == "beyond_depth"
    assert both["why"].endswith(f"; {alone['why']}")
    shown = done(*ask[0], *ask[1]).stdout
    assert ("(vector: not returned)" in shown, "no vector" in shown) == (True, False)


def test_before_is_the_configuration_and_after_is_against_with_a_query_and_without(monkeypatch):
    """What compare says of each query, subtracted here: after less before, as everywhere."""
    monkeypatch.setenv("COLUMNS", "400")
    rows = document("compare", STARTER, "vector", "bm25")["queries"]
    values = {row["id"]: (row["values"]["vector"], row["values"]["bm25"]) for row in rows}
    change = {id_: after - before for id_, (before, after) in values.items()}
    gain = sorted((id_ for id_ in change if change[id_] > 0), key=lambda id_: (-change[id_], id_))
    shown = done("explain", STARTER, "vector", "--against", "bm25").stdout
    assert shown.split()[:6] == ["query", "before:", "vector", "after:", "bm25", "change"]
    assert [line.split()[:4] for line in shown.splitlines()[2:] if line.startswith("q")] == [
        [id_, *(f"{value:.4f}" for value in values[id_]), f"{change[id_]:+.4f}"] for id_ in gain[:10]
    ]
    assert f"rises on {len(gain)} of {len(rows)} queries with a relevant entry;" in shown
    assert f"\nit falls on {sum(own < 0 for own in change.values())}, listed by" in shown
    assert shown.endswith(" bm25 --against vector\n")
    same = done("explain", STARTER, "fts", "--against", "other=fts").stdout
    assert same.endswith("rises on none of 59 queries with a relevant entry\n")
    one = done("explain", STARTER, gain[0], "vector", "--against", "bm25").stdout
    assert one.index("\nbefore: vector") < one.index("\nafter: bm25")


def test_lists_alone_cannot_be_explained_so_no_command_names_them_first(tmp_path):
    (tmp_path / "prod.run").write_text("q30 Q0 conn-pool-limit 1 1.0 theirs\n")
    found = document("explain", STARTER, "bm25", "--against", tmp_path / "prod.run")
    assert (found["better"] > 0, found["reverse"]) == (True, None)


CHANGE = {"before": 1, "after": 12, "by": None, "headline": "", "standing": None, "why": "", "changes": {}}


def test_changes_are_counted_by_kind_and_relevant_entries_that_moved_come_first():
    rows = [("e1", "moved", 0), ("e2", "stayed", 3), ("e3", "entered", None), ("e4", "left", 1)]
    changes = [CHANGE | {"id": id_, "kind": kind, "grade": grade} for id_, kind, grade in rows]
    block = _changes(changes, 2)
    assert [row[2] for row in block.rows] == ["e4", "e1"]
    assert block.lines[0] == "changes: 1 stayed, 1 moved, 1 entered, 1 left; 2 more in the JSON document"
    assert _changes(changes, 4).lines[0] == "changes: 1 stayed, 1 moved, 1 entered, 1 left"
    why = {"kind": "entered", "id": "a", "grade": None, "by": "severity", "why": "place 85 in fts"}
    assert _changes([CHANGE | why], 2).rows[0][-1] == "severity; before: place 85 in fts"


def test_columns_of_zeros_are_left_out_and_a_long_list_is_cut_at_the_limit():
    def entry(at, tags):
        signals = {"bm25": {"value": 9.0 - at, "position": at}, "tags": {"value": tags, "position": None}}
        terms = [{"weight": 0.1, "signal": "tags", "contribution": 0.1 * tags}]
        facts = {"rank": at, "id": f"e{at}", "grade": None, "score": 9.0 - at, "factor": None, "headline": ""}
        return facts | {"signals": signals, "contributions": terms}

    about = {"label": "mine", "role": "only", "strategy": "bm25", "system": "mine", "metrics": None, "limit": 2}
    about |= {"depths": {}, "skipped_retrievers": [], "finish": [], "intent": "", "matched": "", "ranked": 7}
    block = _listed({**about, "entries": [entry(at, 0.0) for at in (1, 2, 3)]}, {"text": "x"})
    assert block.heads == ["rank", "entry", "grade", "score", "bm25", "title"]
    assert [row[1] for row in block.rows] == ["e1", "e2"]
    assert block.lines[-1].endswith(": tags") and "3 listed" in block.lines[1]
    assert "0.1*tags" in _listed({**about, "entries": [entry(1, 0.0), entry(2, 1.0)]}, {"text": "x"}).heads
    named = [
        _listed({**about, "matched": to, "entries": [entry(1, 0.0)]}, {"text": "x"}).lines for to in ("x", "y")
    ]
    assert ["keywords" in " ".join(lines) for lines in named] == [False, True]


@pytest.mark.parametrize(("value", "place", "shown"), [(None, None, "-"), (0.0, 3, "0.0000 #3")])
def test_a_signal_that_adds_nothing_is_told_from_one_that_is_not_there(value, place, shown):
    terms = [{"signal": "v", "weight": 1.0, "contribution": 0.0}]
    entry = {"signals": {"v": {"value": value, "position": place}}, "contributions": terms}
    assert _signal(entry, "v", 1.0, 4) == shown
