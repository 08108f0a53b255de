"""Runs as strangers write them: each row is a few labels, a run, and the value that is right by hand."""

from math import log2
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shared import tabled, write_set

import steelyard_eval as sy
from steelyard_eval.choose.recommend import recommend
from steelyard_eval.compare import compare
from steelyard_eval.compare.list_recording import save_lists
from steelyard_eval.datasets import load

SECOND, FIFTH = 1 / log2(3), 1 / log2(6)
WORDS = ["harbour", "kettle", "lantern", "meadow", "needle", "orchard", "pepper", "quarry", "ribbon", "saddle"]
WORDS += ["timber", "velvet"]


def world(folder, qrels, entries=None, queries=4):
    """A data set of made-up notes; the entries are e00 to e11 and those that are named."""
    ids = [f"e{i:02}" for i in range(12)] + list(entries or ())
    texts = {id_: f"{WORDS[i % 12]} {WORDS[(5 * i + 3) % 12]}" for i, id_ in enumerate(ids)}
    corpus = [{"id": id_, "text": text} for id_, text in texts.items()]
    asked = [{"id": f"k{i}", "text": f"{WORDS[i % 12]} {i}"} for i in range(queries)]
    write_set(folder, corpus, asked, text_for_embedding="{text}", as_of="2026-05-01")
    (folder / "qrels.txt").write_bytes(qrels.encode())
    return load(folder)


def run_of(folder, text, name="theirs.run"):
    """A run; lines of query, entry and score, unless they are whole lines."""
    lines = [
        line if len(line.split()) != 3 else "{} Q0 {} 0 {} t".format(*line.split()) for line in text.split("\n")
    ]
    path = folder / name
    path.write_bytes("\n".join(lines).encode())
    return str(path)


def values_of(found, label="theirs.run"):
    return {query.id: query.values[label] for query in found.result.queries}


def differences(found):
    """By metric the largest difference from ir_measures."""
    (table,) = [table for table in found.result.tables if table.key == "verification"]
    return {row[0]: row[1] for row in table.rows}


WORTH = {0: 0, 1: 1, "second": SECOND, "first of five": 1 / sum(1 / log2(place + 1) for place in range(1, 6))}


class TestValues:
    @tabled
    def test_a_run_has_the_values_that_are_right_by_hand(self, qrels, run, right, tmp_path):
        dataset = world(tmp_path / "w", qrels, ["004", "4", 'a,b_"c"#1'])
        found = compare(dataset, run_of(tmp_path, run), embedder="none", verify=True)
        assert list(values_of(found).values()) == pytest.approx([WORTH[one] for one in right], abs=1e-12)
        assert max(filter(None, differences(found).values()), default=0) < 1e-9

    @tabled
    def test_what_cannot_be_counted_is_refused_by_its_line(self, qrels, run, place, tmp_path):
        with pytest.raises(sy.DataError, match=place):
            compare(world(tmp_path / "w", qrels), run_of(tmp_path, run), embedder="none")

    def test_queries_of_a_run_that_the_set_lacks_are_counted(self, tmp_path):
        dataset = world(tmp_path / "w", "k0 0 e01 1")
        run = run_of(tmp_path, "k0 e01 1\nstray e01 1\nk3 e02 1")
        compared = compare(dataset, run, embedder="none").result.notices
        for found in (compared, save_lists(dataset, {"theirs": run}, tmp_path / "lists")[1]):
            (told,) = [notice.facts for notice in found if notice.key == "foreign_queries"]
            assert (told["odd"], told["queries"], told["named"]) == (1, 3, ["'stray'"])

    def test_an_id_twice_in_an_answer_counts_once(self, tmp_path):
        dataset = world(tmp_path / "w", "k0 0 e01 1\nk1 0 e02 1\nk1 0 e03 1")
        found = compare(dataset, {"x": {"k0": ["e01", "e01"], "k1": ["e02", "e02", "e03"]}}, embedder="none")
        assert list(values_of(found, "x").values()) == [1, 1]
        assert any(notice.startswith("x: 2 ") for notice in found.notices)


class TestEqualScores:
    """The relevant entry of each query has the smallest id and stands fifth in a run without any difference."""

    @pytest.fixture(scope="class")
    @classmethod
    def made(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("ties")
        dataset = world(folder / "w", "".join(f"k{i} 0 e00 1\n" for i in range(8)), queries=8)
        flat = "\n".join(f"k{i} e{j:02} 1" for i in range(8) for j in (0, 3, 5, 8, 9))
        steep = "\n".join(f"k{i} e{j:02} {9 - j}" for i in range(8) for j in (1, 0, 2))
        runs = {name: run_of(folder, text, f"{name}.run") for name, text in (("flat", flat), ("steep", steep))}
        save_lists(dataset, runs, folder / "lists")
        return dataset, runs, folder / "lists"

    def faces(self, flat):
        """What can be given for the same lists."""
        rows = [line.split() for line in Path(flat).read_text(encoding="utf-8").splitlines()]
        scores = {f"k{i}": {row[2]: 1.0 for row in rows if row[0] == f"k{i}"} for i in range(8)}
        order = {query: sorted(own, reverse=True) for query, own in scores.items()}
        return {
            "run": flat,
            "mapping": scores,
            "frame": pd.DataFrame([(row[0], row[2], 1.0) for row in rows], columns=["query", "entry", "score"]),
            "lists": order,
            "function": lambda query: order[query.id],
            "pairs": lambda query: [(id_, 0.5) for id_ in order[query.id]],
        }

    @pytest.mark.parametrize("face", ["run", "mapping", "frame", "lists", "function", "pairs"])
    def test_every_face_gives_one_value_alone_recorded_and_recommended(self, made, face, tmp_path):
        dataset, runs, _ = made
        given = {**runs, "flat": self.faces(runs["flat"])[face]}
        alone = compare(dataset, given, embedder="none")
        save_lists(dataset, given, tmp_path / "lists")
        again = compare(dataset, "flat, steep", recording=tmp_path / "lists")
        best = recommend(dataset, recording=tmp_path / "lists", current="flat")
        means = [found.result.row("flat").means["nDCG@10"].mean for found in (alone, again, best)]
        assert means == pytest.approx([FIFTH] * 3)
        assert alone.result.row("steep").against.verdict == again.result.row("steep").against.verdict

    @tabled
    def test_a_recorded_list_keeps_its_order_under_every_fusion_of_it_alone(self, made, strategy):
        found = compare(made[0], {"x": strategy}, recording=made[2])
        assert list(values_of(found, "x").values()) == pytest.approx([FIFTH] * 8)

    def test_ranks_of_a_recorded_list_are_its_places_and_ties_after_fusion_go_by_id(self, made):
        found = compare(made[0], {"x": "rrf(flat, steep, k=1)"}, recording=made[2]).result
        ids = found.queries[0].lists["x"].entries
        # e00 has 1/(1+5) + 1/(1+1); e09 has 1/2, e08 and e01 1/3 each, e05 and e02 1/4 each, e03 1/5.
        assert ids == ["e00", "e09", "e01", "e08", "e02", "e05", "e03"]

    def test_verification_reads_the_file_that_was_given(self, made, monkeypatch):
        # a reader that orders ties otherwise than trec_eval
        wrong = {f"k{i}": [("e00", 1.0)] for i in range(8)}
        monkeypatch.setattr("steelyard_eval.compare.list_contenders.read_run", lambda _: wrong)
        found = compare(made[0], made[1]["flat"], embedder="none", verify=True)
        assert differences(found)["nDCG@10"] == pytest.approx(1 - FIFTH)


class TestIntervals:
    def compared(self, folder, qrels, *runs):
        paths = [run_of(folder, run, f"r{i}.run") for i, run in enumerate(runs)]
        baseline = {"baseline": "r0.run"} if len(paths) > 1 else {}
        return compare(world(folder / "w", qrels), paths, embedder="none", **baseline)

    def test_one_query_gives_none(self, tmp_path):
        found = self.compared(tmp_path, "k0 0 e01 1", "k0 e01 1", "k0 e09 2\nk0 e01 1")
        test = found.result.row("r1.run").against
        assert (test.gain.low, test.gain.high, test.worse) == (None, None, None)
        assert test.gain.mean == pytest.approx(SECOND - 1)
        assert {(of.low, of.high) for row in found.result.rows for of in row.means.values()} == {(None, None)}
        assert found.to_frame()["low"].isna().all() and "[1.000" not in str(found) + found.to_latex()

    def test_equal_values_give_none_and_ends_stay_in_the_range(self, tmp_path):
        qrels = "k0 0 e01 1\nk1 0 e02 1\nk2 0 e05 1\nk3 0 e07 1"
        found = self.compared(tmp_path, qrels, "k0 e01 1\nk1 e02 1\nk2 e05 1\nk3 e09 3\nk3 e07 2", "k0 e09 1")
        means, gain = found.result.row("r0.run").means, found.result.row("r1.run").against.gain
        assert means["nDCG@10"].low > 0.5 and means["nDCG@10"].high == 1
        assert (means["R@10"].low, means["R@10"].high) == (None, None)
        assert gain.low == -1 and -1 < gain.high < 1


class TestScales:
    """A list that is right, of negated distances, and one that is wrong, of larger numbers."""

    @pytest.fixture(scope="class")
    @classmethod
    def recorded(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("scales")
        dataset = world(folder / "w", "".join(f"k{i} 0 e0{i} 1\n" for i in range(4)))
        wrong = "\n".join(f"k{i} e10 70\nk{i} e11 60\nk{i} e0{i} 50" for i in range(4))
        right = "\n".join(f"k{i} e0{i} -0.1\nk{i} e11 -0.8\nk{i} e10 -1.5" for i in range(4))
        lists = {"wrong": run_of(folder, wrong, "wrong.run"), "right": run_of(folder, right, "right.run")}
        save_lists(dataset, lists, folder / "lists")
        return dataset, folder / "lists"

    def noticed(self, found, *words):
        return [notice for notice in found.notices if all(word in notice for word in words)]

    @pytest.mark.parametrize("fusion", ["weighted_sum(0.1*wrong, 0.9*right", "comb_max(wrong, right"])
    def test_a_term_that_weighs_nothing_is_told_and_minmax_reads_it(self, recorded, fusion):
        dataset, folder = recorded
        found = compare(dataset, {"x": f"{fusion}, normalize=max)"}, recording=folder)
        assert len(self.noticed(found, "x: right", "4 of 4", "minmax")) == 1
        other = compare(dataset, {"x": f"{fusion}, normalize=minmax)"}, recording=folder)
        assert not self.noticed(other, "weighs") and set(values_of(other, "x").values()) == {1}

    def test_a_raw_sum_is_told_once_with_both_values(self, recorded):
        dataset, folder = recorded
        found = compare(dataset, {"x": "weighted_sum(0.1*wrong, 0.9*right)"}, recording=folder)
        assert len(self.noticed(found, "x", "70", "1.5", "0.500", "1.000", "minmax")) == 1


@pytest.mark.parametrize("queries", [12, 40])
@pytest.mark.parametrize("current", ["bm25", "echovault"])
def test_where_nothing_is_found_labels_are_not_blamed(tmp_path, queries, current):
    letters = "ሀለሐመሠረሰሸቀበተቸኀነኘአከኸወዐዘዠየደጀገጠጨጰጸፀፈፐ"  # Ge'ez, asked in English
    rng = np.random.default_rng(3)
    corpus = {f"e{i}": "".join(rng.choice(list(letters), 9)) for i in range(queries)}
    asked = {f"k{i}": f"{WORDS[i % 12]} note" for i in range(queries)}
    found = sy.load(corpus, asked, {f"k{i}": [f"e{i}"] for i in range(queries)}).recommend(current=current)
    assert (found.verdict, found.result.answer.key) == ("keep", "keep_nothing_found")


def test_a_current_search_that_finds_nothing_is_said_to_find_nothing(tmp_path):
    dataset = world(tmp_path / "w", "".join(f"k{i} 0 e{i % 12:02} 1\n" for i in range(40)), queries=40)
    empty = run_of(tmp_path, "\n".join(f"k{i} e{(i + 5) % 12:02} 1" for i in range(40)))
    found = recommend(dataset, embedder="lsa", current=empty)
    blocker = found.result.decision.blocker
    assert (found.verdict, blocker.key, blocker.facts["queries"]) == ("try", "nothing_found", 40)
