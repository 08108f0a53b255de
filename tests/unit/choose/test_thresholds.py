"""Bounds of floors, by hand and by scipy's own distributions."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from shared import done, tabled, write_set

from steelyard import SearchConfig, find_system
from steelyard.base.errors import ConfigError
from steelyard.finish import Floor, parse_stages
from steelyard_eval.choose import find_floor as floors
from steelyard_eval.choose.find_floor import floor_for_all, floor_for_false_answers, floor_for_recall_loss
from steelyard_eval.compare import compare
from steelyard_eval.datasets import load
from steelyard_eval.measures.paired import exact_interval


def lists(rows, unit=None):
    """Of [[(score, relevant), ...] of each query]; as a list shows them."""
    flat = [hit for own in rows for hit in own]
    return floors.ScoredResults(
        np.cumsum([0, *map(len, rows)]),
        np.array([score for score, _ in flat], dtype=float),
        np.array([relevant for _, relevant in flat], dtype=bool),
        np.arange(len(rows)) if unit is None else np.array(unit),
    )


class TestBounds:
    def test_what_a_floor_loses(self):
        own = lists([[(0.9, True), (0.4, True), (0.3, False)], [(0.2, False)], [(0.5, True)]])
        # the first list loses none, one and both of its two; the second has none to lose; the third its only one
        assert own.recall_loss(np.array([0.0, 0.5, 0.95])).tolist() == [[0.0, 0.5, 1.0], [0.0, 0.0, 1.0]]
        assert own.best.tolist() == [0.9, 0.2, 0.5]

    def test_the_bound_is_students_on_the_mean_with_one_loss_added(self):
        rng = np.random.default_rng(0)
        own = lists([[(score, True)] for score in rng.uniform(size=60)])
        found = floor_for_recall_loss(own, 0.2)
        lost = (own.score < found.floor).astype(float)
        by_hand = (lost.sum() + 1) / 61 + stats.t.ppf(0.9, 59) * lost.std(ddof=1) / np.sqrt(60)
        assert found.bound == pytest.approx(by_hand, abs=1e-12)
        assert found.bound <= 0.2
        assert found.queries == found.units == 60
        higher = own.score[own.score > found.floor].min()  # the next floor that is tried breaks the promise
        lost = (own.score < np.nextafter(higher, 2)).astype(float)
        assert (lost.sum() + 1) / 61 + stats.t.ppf(0.9, 59) * lost.std(ddof=1) / np.sqrt(60) > 0.2

    def test_queries_that_vary_together_widen_the_bound(self):
        rng = np.random.default_rng(1)
        same = rng.uniform(size=20)
        rows = [[(score, True)] for score in np.repeat(same, 5)]
        apart = floor_for_recall_loss(lists(rows), 0.2)
        together = floor_for_recall_loss(lists(rows, np.repeat(np.arange(20), 5)), 0.2)
        assert together.floor < apart.floor
        assert (apart.units, together.units) == (100, 20)

    def test_too_few_labels_are_refused_with_their_number(self):
        with pytest.raises(ConfigError, match=r"40 labelled.*here are 39"):
            floor_for_recall_loss(lists([[(0.5, True)]] * 39 + [[(0.5, False)]] * 10), 0.1)
        with pytest.raises(ConfigError, match=r"10 groups.*here are 50 of 1 groups"):
            floor_for_recall_loss(lists([[(0.5, True)]] * 50, [0] * 50), 0.1)

    @pytest.mark.parametrize(("share", "needed"), [(0.1, 22), (0.05, 45), (0.2, 11)])
    def test_so_many_questions_prove_a_share_of_false_answers(self, share, needed):
        # (1 - share) ** n <= 0.1, as the prototype's README has it: 22, 45 and 11
        assert floors.errors_allowed(needed, share) == 0
        assert floors.errors_allowed(needed - 1, share) == -1
        with pytest.raises(ConfigError, match=rf"needs {needed} queries.*there are {needed - 1}; mark 1 more"):
            floor_for_false_answers(lists([[(at / 100, False)] for at in range(needed - 1)]), share)

    def test_a_floor_for_false_answers_lies_just_above_an_order_statistic(self):
        best = np.arange(100) / 100.0
        found = floor_for_false_answers(lists([[(score, False)] for score in best]), 0.1)
        allowed = max(k for k in range(100) if stats.binom.cdf(k, 100, 0.1) <= 0.1)
        assert int((best >= found.floor).sum()) == allowed
        assert found.bound <= 0.1

    def test_questions_that_vary_together_are_one_for_false_answers(self):
        rows = [[(at / 100, False)] for at in range(60) for _ in range(2)]
        unit = np.repeat(np.arange(60), 2)
        found = floor_for_false_answers(lists(rows, unit), 0.1)
        assert (found.queries, found.units) == (120, 60)
        assert found.floor == floor_for_false_answers(lists(rows[::2]), 0.1).floor
        with pytest.raises(ConfigError, match="things; mark 1"):
            floor_for_false_answers(lists(rows[:42], unit[:42]), 0.1)

    def test_questions_whose_lists_are_empty_need_no_floor(self):
        found = floor_for_false_answers(lists([[]] * 25 + [[(0.3, False)]]), 0.2)  # of 26, two errors are allowed
        assert found.floor == -np.inf
        assert floor_for_all({"false": found}) == -np.inf

    @tabled
    def test_a_floor_in_five_digits_keeps_its_promises(self, lost, false, chosen):
        given = {"lost": lost, "false": false}
        bounds = {name: floors.FloorBound(floor, 0, 40, 40) for name, floor in given.items() if floor is not None}
        found = floor_for_all(bounds)
        assert found == (None if chosen is None else pytest.approx(chosen, abs=1e-12))
        if found is not None:
            assert (false if false is not None else -1) <= found <= (lost if lost is not None else 1)

    def test_exact_intervals_are_those_of_clopper_and_pearson(self):
        for errors, count in ((0, 22), (3, 50), (22, 22)):
            theirs = stats.binomtest(errors, count).proportion_ci(0.95, method="exact")
            assert exact_interval(errors, count) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


# Floors from a data set: from the command to the file and back into search

BM25 = "weighted_sum(1*bm25, normalize=theoretical)"
BOTH = {"lost": 0.1, "false": 0.1}
FUSED = "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """60 entries of two words each, 50 queries for a word of one, 24 queries for words that no entry has."""
    return written(tmp_path_factory.mktemp("set") / "mine", [f"nothing{at} whatever" for at in range(24)])


def written(place, unanswerable):
    """The data set with these questions that nothing answers."""
    names = [f"word{chr(97 + at % 26)}{chr(97 + at // 26)}" for at in range(60)]
    corpus = [{"id": name, "text": f"{name} of the {names[at - 1]}"} for at, name in enumerate(names)]
    asked = [{"id": f"q{at}", "text": f"{name} of"} for at, name in enumerate(names[:50])]
    asked += [{"id": f"n{at}", "text": text, "answerable": False} for at, text in enumerate(unanswerable)]
    qrels = "".join(f"q{at} 0 {name} 1\n" for at, name in enumerate(names[:50]))
    return write_set(place, corpus, asked, qrels, as_of="2026-01-01")


def shown_of(result, key="silence"):
    """The rows of a table of a comparison, by column."""
    tables = [table for table in result.tables if table.key == key]
    return [dict(zip(table.columns, row, strict=True)) for table in tables for row in table.rows]


class TestFloors:
    def test_from_labels_to_a_file_that_searches_and_compare_counts_what_is_silent(self, folder, tmp_path):
        found = floors.find_floor(load(folder), FUSED, {"lost": 0.1}, embedder="lsa")
        assert found.claims[0]["queries"] == 50
        assert found.claims[0]["bound"] <= 0.1
        out = tmp_path / "w.json"
        found.config.save(out)
        again = SearchConfig.load(out)
        assert again == found.config
        assert str(again.finish[-1]).startswith("floor(")
        result = compare(folder, [str(out), "bm25"], embedder="lsa", timed=False).result
        floored, plain = shown_of(result)
        assert (floored["none"], plain["none"]) == (24, 24)
        assert plain["false_answers"] == 0
        assert floored["lost"] <= 0.1
        points = shown_of(result, "floors")
        assert [point["floor_lost"] for point in points] == sorted(point["floor_lost"] for point in points)
        assert points[0]["answered_share"] == 1.0  # the lowest floor is the least score of any list
        assert not [said for said in result.notices if said.key == "other_scale"]
        weights = json.loads(out.read_text())
        weights["provenance"]["floor"]["dataset_sha256"] = "0" * 64
        out.write_text(json.dumps(weights))
        moved = compare(folder, [str(out), "bm25"], embedder="lsa", timed=False)
        assert [said.facts["changed"] for said in moved.result.notices if said.key == "other_scale"] == [True]
        assert "Unanswerable queries" in moved.report(tmp_path / "report")[0].read_text()
        assert result.provenance.data.judged == 50

    def test_promises_that_exclude_each_other_are_told(self, tmp_path):
        """The unanswerable questions score as the others do, so none is silenced without losing all of these."""
        alike = [f"word{chr(97 + at)}a of it" for at in range(24)]
        found = floors.find_floor(load(written(tmp_path / "mine", alike)), "vector", BOTH, embedder="lsa")
        assert found.least is None
        assert not [stage for stage in found.config.finish if isinstance(stage, Floor)]
        assert set(found.config.retrievers) == {"vector"}  # and not those that the floor would have read

    def test_lists_that_are_all_empty_are_compared(self, folder):
        never = replace(
            find_system("bm25").config(10, "", {}),
            finish=parse_stages(["at_least(99)", f"floor(0.5, on={BM25})", "cut(10)"]),
        )
        result = compare(folder, [never], embedder="lsa", timed=False).result
        assert (shown_of(result)[0]["lost"], shown_of(result, "floors")) == (0.0, [])

    @pytest.mark.parametrize("text", ["lost=0", "wrong=10%", "lost=lots", "lost=200%"])
    def test_a_promise_that_is_none_is_refused(self, text):
        with pytest.raises(ConfigError, match=r"share|can promise"):
            floors.promises_of(text)

    def test_tuning_puts_a_floor_into_what_it_writes(self, folder, tmp_path):
        out = tmp_path / "w.json"
        words = ["tune", folder, FUSED, "--embedder", "lsa", "--out", out, "--floor"]
        done(*words, "lost=10%")
        assert str(SearchConfig.load(out).finish[-1]).startswith("floor(")
        assert "write lost=10%" in done(*words, "words", code=2).stderr

    @tabled
    def test_what_a_floor_cannot_do_or_need_not_is_told(self, floor, claims, key):
        said = floors.describe_floor(floor, claims)
        assert said.key == key
        shown = {"measured": 0.02, "share": 0.1, "queries": 60, "sure": 0.9}
        assert key != "floor_not_needed" or said.facts == shown
