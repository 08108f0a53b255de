"""Labels that are shuffled keep their margins; what age alone keeps out is listed, with its date."""

from collections import Counter
from dataclasses import replace
from itertools import chain

import pytest
from shared import document, write_set

import steelyard_eval as sy
from steelyard_eval.explain.known_items import DRAWS, null_check, shuffled


def test_shuffled_labels_keep_the_grades_of_queries_and_the_frequencies_of_entries():
    qrels = {"q1": {"a": 1, "b": 3, "z": 0}, "q2": {"a": 2}, "q3": {"c": 1, "d": 1}, "q4": {"a": 2}}
    asked = [["q1", "q2", "q3"], ["q4"]]
    draws = list(shuffled(qrels, asked, 0))
    assert len(draws) == DRAWS
    for draw in draws:
        assert {id_: sorted(row.values()) for id_, row in draw.items()} == {
            "q1": [1, 3], "q2": [2], "q3": [1, 1], "q4": [2]
        }  # fmt: skip
        assert Counter(chain.from_iterable(draw.values())) == {"a": 3 - 1 + 1, "b": 1, "c": 1, "d": 1}
        assert draw["q4"] == {"a": 2}  # of a scope of its own
    assert len({str(draw) for draw in draws}) > 5


@pytest.mark.parametrize(("popular", "gone"), [(False, True), (True, False)])
def test_a_lead_by_entries_that_suit_any_query_stays_under_shuffled_labels(tmp_path, popular, gone):
    words = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "islet", "jetty"]
    corpus = [*words, "what every query is about"]
    labels = "".join(f"q{at} 0 m{11 if popular else at} 1\n" for at in range(1, 11))
    made = sy.load(write_set(tmp_path, corpus, [f"{word} query" for word in words], labels, groups="given"))
    (tmp_path / "odd.run").write_text("q1 Q0 m1 1 1 x\n")
    assert null_check(made.dataset, str(tmp_path / "odd.run"), "lsa").facts["gone"] is gone
    few = [replace(made.dataset, qrels=dict([*made.dataset.qrels.items()][:count])) for count in (1, 2)]
    assert ["lead" in null_check(one, "bm25", "lsa").facts for one in few] == [False, True]


def test_what_only_its_age_keeps_out_is_listed_with_its_date(tmp_path):
    corpus = [{"id": "aged", "text": "rotate keys", "created_at": "2020-01-02"}]
    corpus += [{"id": f"new{at}", "text": f"rotate keys {at}", "created_at": "2026-10-30"} for at in range(10)]
    queries = [{"id": "q", "text": "rotate keys"}, {"id": "r", "text": "keys 3"}]
    folder = str(write_set(tmp_path, corpus, queries, "q 0 aged 2\nr 0 new3 1\n", as_of="2026-11-01"))
    faded = "faded=weighted_sum(0.2*bm25, 0.8*recency(half_life=90d), normalize=max)"
    found = document("compare", folder, "bm25", faded, "--embedder", "none")
    (table,) = [table for table in found["tables"] if table["key"] == "buried"]
    assert table["rows"] == [["faded", "q", "aged", 2, "2020-01-02", None, 1]]
    (told,) = [note["facts"] for note in found["notices"] if note["key"] == "buried"]
    assert told == {"counts": ["faded loses 1, gains 0"], "oldest": "2020-01-02"}
    about = document("explain", folder, "q", faded.partition("=")[2], "--embedder", "none")["configurations"][0]
    (missing,) = about["missing"]
    assert (missing["id"], missing["dated"], missing["as_new"]) == ("aged", "2020-01-02", 1)
