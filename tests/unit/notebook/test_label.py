"""Judging: what is pooled, in which order, what is saved, what the labels show."""

import hashlib
import json
import shlex
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import steelyard_eval as sy
from steelyard.base.errors import ConfigError, DataError
from steelyard.base.extensions import installing, missing_modules
from steelyard_eval.cli.main import main
from steelyard_eval.datasets import load
from steelyard_eval.datasets.labels import JudgedPool
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.notebook.label.apply import apply, state_of, to_state
from steelyard_eval.notebook.label.desk import _settled, desk
from steelyard_eval.notebook.label.judgment_file import Judgment, agreement, read_judgments
from steelyard_eval.notebook.label.open import open_judging
from steelyard_eval.notebook.label.pool import (
    drawn_order,
    drawn_queries,
    judged_whole,
    pooled,
    sampling_keys,
    sampling_weights,
    standings,
)
from steelyard_eval.notebook.label.session import Session
from steelyard_eval.recording.saved_runs import keep
from steelyard_eval.result.structs import Answer, DataFacts, Decision, Provenance, Result

CONTENDERS = "bm25, rrf(bm25, vector)"


@pytest.fixture(scope="module")
def data():
    return sy.load(starter())


@pytest.fixture(scope="module")
def blank(data, tmp_path_factory):
    """The starter set as if nobody had judged it: a pool of it."""
    dataset = replace(data.dataset, qrels={})
    return open_judging(dataset, CONTENDERS, tmp_path_factory.mktemp("j"), workspace=lambda: data.workspace).pool


@pytest.fixture
def session(blank, tmp_path):
    return Session(blank, tmp_path / "judgments", now=lambda: 1_790_000_000.0)


def small(seed=0, queries=20, count=60):
    """A pool of two made-up contenders, and grades."""
    rng = np.random.default_rng(seed)
    found = {
        name: [[f"m{e:02d}" for e in rng.permutation(count)[:10]] for _ in range(queries)] for name in ("a", "b")
    }
    dataset = sy.load({"m": "x"}, {f"q{q}": f"x{q}" for q in range(queries)}, {"q0": ["m"]}).dataset
    pool = pooled(replace(dataset, qrels={}), found, dataset.queries, seed)
    return pool, rng.integers(0, 4, len(pool))


def said_of(verdict, more=None):
    """A recommendation of this verdict."""
    about = Provenance("t", DataFacts("starter"), metrics=["nDCG@10"])
    return Result("recommend", Answer("told", {"text": verdict}), about, decision=Decision(verdict, more=more))


class TestOrder:
    """Priority sampling."""

    def test_sums_are_estimated_without_bias_for_every_count(self):
        rng = np.random.default_rng(0)
        values, amounts = rng.random(40) + 0.05, rng.random(40)
        for count in (5, 20):
            found = []
            for seed in range(4000):
                keys = sampling_keys(values, seed)
                found.append(float(sampling_weights(values, keys, count) @ amounts))
            error = np.std(found) / np.sqrt(len(found))
            assert abs(np.mean(found) - amounts.sum()) < 4 * error

    def test_of_all_pairs_each_stands_for_itself(self):
        values = np.array([0.2, 0.9, 0.1])
        assert sampling_weights(values, sampling_keys(values, 0), 3).tolist() == [1, 1, 1]

    def test_pairs_that_part_the_contenders_come_first(self):
        pool, _ = small()
        apart = np.abs(pool.gain[1] - pool.gain[0])
        early, late = np.array_split(pool.order, 2)

        assert apart[early].mean() > 1.3 * apart[late].mean()
        assert sorted(pool.order.tolist()) == list(range(len(pool)))
        assert (replace(pool, seed=9).order != pool.order).any()


class TestStandings:
    """What labels show."""

    def test_with_all_labels_it_is_the_mean_difference(self):
        pool, grades = small()
        (found,) = standings(pool, grades)

        per_query = np.zeros(20)
        for at in range(len(pool)):
            per_query[pool.query[at]] += grades[at] / 3 * (pool.gain[1, at] - pool.gain[0, at])
        assert found.delta == pytest.approx(per_query.mean(), abs=1e-12)
        half = 2.093024 * per_query.std(ddof=1) / np.sqrt(20)  # t of 19 degrees, 97.5%: tables
        assert (found.low, found.high) == pytest.approx((found.delta - half, found.delta + half), abs=1e-6)
        assert found.judged == len(pool)

    def test_labels_of_whole_queries_count_be_they_zero(self):
        pool, grades = small()
        own = np.arange(10)
        known = np.where(np.isin(pool.query, own), np.maximum(grades, 0), -1)
        known[np.flatnonzero(known >= 0)[::2]] = 0
        assert standings(pool, known, own)[0].judged == int(np.isin(pool.query, own).sum())

    def test_a_gap_in_the_order_ends_what_counts(self):
        pool, grades = small()
        seen = np.full(len(pool), -1)
        first = pool.order[[0, 1, 2, 4, 5]]
        seen[first] = grades[first]

        assert standings(pool, seen)[0].judged == 3

    def test_few_labels_settle_nothing_and_many_do(self):
        pool, _ = small(queries=60)
        better = np.where(pool.gain[1] > pool.gain[0], 3, 0)
        seen = np.full(len(pool), -1)
        seen[pool.order[:10]] = better[pool.order[:10]]
        (early,) = standings(pool, seen)
        seen[pool.order[:300]] = better[pool.order[:300]]
        (late,) = standings(pool, seen)

        assert (early.verdict, early.needed) == ("open", None)
        assert (late.verdict, late.needed) == ("better", 0)

    def test_labels_that_the_set_has_count_as_in_compare(self):
        """A first new label would stand for hundreds of pairs, yet 59 queries with labels show what they show."""
        pool, _ = small(queries=60)
        known = {}
        for at in np.flatnonzero(pool.gain[1] > pool.gain[0])[::2].tolist():
            query, entry = pool.pair(at)
            known.setdefault(query, {})[entry] = 3
        pool = replace(pool, dataset=replace(pool.dataset, qrels=known))
        seen = pool.known.copy()
        before = standings(pool, seen)[0]
        seen[pool.order[0]] = 3
        after = standings(pool, seen)[0]

        assert (before.verdict, before.needed, after.verdict) == ("better", 0, "better")
        assert after.delta - before.delta == pytest.approx(
            (pool.gain[1] - pool.gain[0])[pool.order[0]] / 60, abs=1e-12
        )
        few = replace(before, verdict="open", needed=None, judged=1)
        assert "(1)" in _settled(asdict(few), 9)

    def test_labels_to_come_are_those_of_80_percent_power(self):
        """n labels give a difference d an error e, which falls as 1 / sqrt(n): n (2.8016 e / d)^2 in all."""
        pool, grades = small(2, queries=40)
        seen = np.full(len(pool), -1)
        seen[pool.order[:60]] = grades[pool.order[:60]]
        (found,) = standings(pool, seen)
        error = (found.high - found.delta) / 1.959964
        assert found.verdict == "open"
        assert abs(found.delta) > error
        assert found.needed == pytest.approx(60 * (2.801585 * error / found.delta) ** 2 - 60, abs=1.01)

        seen[pool.order[:60]] = 0  # nothing is relevant: nothing can be said
        assert standings(pool, seen)[0].needed is None

    def test_a_difference_within_its_standard_error_forecasts_nothing(self):
        """With 60 labels it swings between hundreds and millions from one label to the next."""
        pool, grades = small(1, queries=40)
        seen = np.full(len(pool), -1)
        seen[pool.order[:60]] = grades[pool.order[:60]]
        (found,) = standings(pool, seen)
        assert 0 < abs(found.delta) < (found.high - found.delta) / 1.959964
        assert (found.verdict, found.needed) == ("open", None)

    def test_labels_of_the_data_set_are_used_and_not_asked_for(self, data, tmp_path):
        own = open_judging(data.dataset, CONTENDERS, tmp_path, workspace=lambda: data.workspace)
        asked = {own.pool.pair(at) for at in own.order.tolist()}

        assert not any(entry in data.dataset.qrels.get(query, {}) for query, entry in asked)
        assert 0 < len(asked) < len(own.pool)


class TestSession:
    """One judge at work."""

    def test_every_judgment_is_on_disk_before_the_next_pair(self, session):
        texts = []
        for grade in (0, 3, 1):
            pair = session.next
            texts.append(session.shown(pair)[0].text)
            session.give(grade, "because" if grade == 3 else "")
            assert read_judgments(session.file)[pair].grade == grade
        lines = [json.loads(line) for line in session.file.read_text().splitlines()]
        assert [line["grade"] for line in lines] == [0, 3, 1]
        assert lines[1] == {"query": lines[1]["query"], "entry": lines[1]["entry"], "grade": 3, "note": "because",
                            "at": "2026-09-21T14:13:20Z",  # date -u -d @1790000000
                            "dataset": session.pool.dataset.path.name, "asked": texts[1],
                            "digest": lines[1]["digest"], "drawn": False}  # fmt: skip
        assert session.qrels.read_text().splitlines()[1] == f"{lines[1]['query']} 0 {lines[1]['entry']} 3"

    def test_a_session_goes_on_where_it_was_left(self, session, blank):
        session.give(2)
        session.give(1)
        again = Session(blank, session.folder)

        assert (again.next, again.left, list(again.given)) == (session.next, session.left, list(session.given))

    def test_undo_takes_back_the_last_one(self, session):
        first = session.next
        assert session.undo() is None
        session.give(2)
        session.give(1)
        session.undo()

        assert session.undo() == first
        assert session.next == first
        assert read_judgments(session.file) == {}

    def test_what_is_taken_back_is_asked_next_also_where_others_were_passed_over(self, session, blank):
        session.skip()  # the next session asks it first
        second = session.next
        session.give(2)
        third = session.next
        session.nothing()
        again = Session(blank, session.folder)
        assert again.undo() == (third[0], "")
        assert again.next[0] == third[0]
        assert again.undo() == again.next == second
        again.give(1)
        assert again.next[0] == third[0]  # what was taken back before

    def test_what_is_taken_back_is_asked_again_be_it_copied_into_the_data_set(self, session, blank):
        first = session.next
        session.give(2)
        held = {first[0]: {first[1]: 2}}
        again = Session(replace(blank, dataset=replace(blank.dataset, qrels=held)), session.folder)
        assert again.counted() == (1, 1, 0)
        assert again.undo() == again.next == first
        assert again.labels == held  # the label stays till there is another one
        again.give(3)
        assert again.qrels.read_text() == f"{first[0]} 0 {first[1]} 3\n"

    def test_a_key_pressed_twice_does_not_judge_the_next_pair(self, session):
        pair = session.next
        session.give(2, pair=pair)
        with pytest.raises(ConfigError, match="judged already"):
            session.give(2, pair=pair)
        assert len(session.given) == 1

    def test_grades_and_names_are_checked(self, session, blank, tmp_path):
        with pytest.raises(ConfigError, match="0, 1, 2,"):
            session.give(4)
        with pytest.raises(ConfigError, match="letters, digits"):
            Session(blank, tmp_path, "../ann")
        with pytest.raises(ConfigError, match="second to themselves"):
            Session(blank, tmp_path, "ann", "ann")
        with pytest.raises(ConfigError, match="ann has judged"):
            Session(blank, tmp_path, "bob", "ann")

    def test_a_broken_line_is_named(self, session, blank):
        session.give(2)
        session.file.write_text(session.file.read_text() + '{"query": "q1"}\n')
        with pytest.raises(DataError, match=r"line 2.*is"):
            Session(blank, session.folder)

    @pytest.mark.parametrize(
        "changed",
        [
            {"query": "q1 0 e 3\nq2"},
            {"entry": "a b"},
            {"entry": ""},
            {"entry": "\ud800"},
            {"grade": True},
            {"grade": 1.0},
            {"note": 5},
        ],
    )
    def test_what_would_be_no_line_of_qrels_is_no_judgment(self, session, blank, changed):
        line = {"query": "q1", "entry": "e", "grade": 2, "note": "", "at": ""} | changed
        session.file.parent.mkdir(exist_ok=True)
        session.file.write_text(json.dumps(line) + "\n")
        with pytest.raises(DataError, match=r"line 1.*is"):
            Session(blank, session.folder)

    def test_a_file_that_is_no_text_is_named(self, session, blank):
        session.file.parent.mkdir(exist_ok=True)
        session.file.write_bytes(b"\xff")
        with pytest.raises(DataError, match="read the judgments"):
            Session(blank, session.folder)

    def test_a_second_judge_sees_the_same_pairs_shuffled_and_no_grade(self, session, blank):
        pairs = []
        for grade in (0, 1, 2, 3) * 5:
            pairs.append(session.next)
            session.give(grade)
        second = Session(blank, session.folder, "bob", session.judge)
        seen = []
        while second.next is not None:
            card = desk(second)["card"]
            assert set(card) == {"pair", "query", "title", "parts", "facts"}
            seen.append(second.next)
            second.give(0)

        assert sorted(seen) == sorted(pairs)
        assert seen != pairs

    def test_the_qrels_load_as_labels_of_the_data_set(self, session, data, tmp_path):
        for grade in (1, 0, 2):
            session.give(grade)
        folder = tmp_path / "set"
        folder.mkdir()
        for name in ("corpus.jsonl", "queries.jsonl"):
            (folder / name).write_bytes((starter() / name).read_bytes())
        (folder / "dataset.json").write_text('{"name": "judged", "as_of": "2026-11-15T00:00:00Z"}')
        (folder / "qrels.txt").write_bytes(session.qrels.read_bytes())

        found = sy.load(folder).dataset.qrels
        assert {(q, e): g for q, own in found.items() for e, g in own.items()} == {
            pair: one.grade for pair, one in session.given.items()
        }


def judged(grades):
    return {("q", f"m{at}"): Judgment("q", f"m{at}", grade, "", "") for at, grade in enumerate(grades)}


def test_kappa_of_the_textbook_table():
    # 50 proposals: both yes 20, both no 15, one alone 5 and 10: observed .7, by chance .5, kappa .4
    first, second = [1] * 25 + [0] * 25, [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    found = agreement(judged(first), judged(second))

    assert found["pairs"] == 50
    assert found["equal"] == pytest.approx(0.7)
    assert found["kappa"] == pytest.approx(0.4)
    assert found["weighted"] == pytest.approx(0.4)


def test_weighted_kappa_forgives_neighbours():
    first, second = [0, 1, 2, 3, 0, 3], [1, 1, 2, 2, 0, 3]
    # squares of distances: 2 observed; by chance those of all 36 pairings of a first with a second grade, over 6
    chance = sum((a - b) ** 2 for a in first for b in second) / 6
    assert agreement(judged(first), judged(second))["weighted"] == pytest.approx(1 - 2 / chance)


def test_kappa_is_not_defined_for_one_grade():
    assert agreement(judged([2, 2]), judged([2, 2]))["kappa"] is None
    assert agreement({}, {}) == {"pairs": 0, "equal": None, "kappa": None, "weighted": None}


class TestCommand:
    """`steelyard judge`."""

    def run(self, *words, keys=""):
        command = ["judge", str(starter()), "bm25", "rrf(bm25, vector)", *map(str, words)]
        return CliRunner().invoke(main, command, input=keys, catch_exceptions=False)

    def test_keys_grade_undo_and_quit(self, tmp_path, monkeypatch):
        monkeypatch.setenv("COLUMNS", "400")
        found = self.run("--out", tmp_path, keys="0u3wn" + "why not\n" + "1q")
        given = list(read_judgments(tmp_path / "judge.jsonl").values())

        assert found.exit_code == 0
        assert [(one.grade, one.note) for one in given] == [(3, ""), (1, "why not")]
        assert "\n2 pairs judged, " in found.stdout
        assert f"saved in {tmp_path / 'judge.qrels.txt'}" in found.stdout.replace("\n", " ")

    def test_what_is_saved_is_counted_as_it_is_in_the_file(self, tmp_path):
        # a grade, a pair that cannot be told, a grade, a query that nothing answers
        found = self.run("--out", tmp_path, keys="1x0zq")
        written = len((tmp_path / "judge.qrels.txt").read_text().splitlines())
        before = len((starter() / "qrels.txt").read_text().splitlines())

        assert written == before + 2
        assert "\n4 pairs judged, " in found.stdout
        said = f": your 2 labels and the {before} that were there; 2 answers have no grade"
        assert said in " ".join(found.stdout.split())

    def test_no_answer_to_a_query_with_relevant_labels_is_contradicted(self, tmp_path):
        """The expected entries are read from the data set's own file."""
        found = self.run("--out", tmp_path / "j", keys="zq")
        ((query, _),) = read_judgments(tmp_path / "j" / "judge.jsonl")
        rows = [line.split() for line in (starter() / "qrels.txt").read_text().splitlines()]
        relevant = [entry for name, _, entry, grade in rows if name == query and grade != "0"]
        assert relevant
        said = f"nothing answers {query}, yet labels call {', '.join(relevant[:3])} relevant; u takes this back\n"
        assert said in found.stderr

    def test_no_answer_to_a_query_without_relevant_labels_is_taken(self, unstated):
        self.add(unstated)
        words = ["judge", str(unstated), "fts", "bm25", "--out", str(unstated / "j")]
        assert "yet labels" not in CliRunner().invoke(main, words, input="zq").stderr

    def test_where_nothing_is_left_to_ask_it_says_so_and_what_to_do(self, tmp_path, monkeypatch):
        # all of starter's queries are labelled, and their labels stand for others
        monkeypatch.chdir(tmp_path)
        drawn, duel = (
            CliRunner().invoke(main, ["judge", str(starter()), *option], input="1q") for option in ([], ["--duel"])
        )

        said = "Nothing is left to label: 59 of 59 queries have labels. These labels are enough for recommend to"
        assert " ".join(drawn.stdout.split()).startswith(said)
        assert "at random and" not in drawn.stderr
        assert "so no pair" in " ".join(duel.stdout.split())
        for found in (drawn, duel):
            said = f"decide by these labels: steelyard recommend {starter()}"
            assert said in " ".join(found.stdout.split())
            said, _, words = " ".join(found.stdout.split()).partition(": steelyard judge ")
            assert said.endswith("two rankings")
            asked = json.loads(self.of(*words.split()[1:], "--json").stdout)
            assert asked["card"] is not None  # the command that is named does ask
        assert not list(tmp_path.iterdir())

    def test_what_two_rankings_part_on_is_asked_where_not_all_is_labelled(self, tmp_path, monkeypatch):
        monkeypatch.setenv("COLUMNS", "400")
        folder = shutil.copytree(starter(), tmp_path / "mine")
        about = json.loads((folder / "dataset.json").read_text())
        (folder / "dataset.json").write_text(json.dumps({**about, "pool": None}))
        said = CliRunner().invoke(main, ["judge", str(folder), "--list"]).stdout
        monkeypatch.chdir(tmp_path)
        shutil.copy(folder / "queries.jsonl", "search-weights.json")  # what replaces it says so
        again = CliRunner().invoke(main, ["judge", str(folder), "--list"]).stdout
        assert "another search" not in said
        replaces = "(if that replaces search-weights.json, it prints how to undo it)"
        assert f"these labels {replaces}: steelyard recommend {folder}" in again
        words = shlex.split(again.split("steelyard judge ")[1].splitlines()[0])
        assert words[1:] == ["echovault", "search-weights.json"]

    def test_the_help_fits_a_screen_and_the_grades_are_on_every_card(self, tmp_path, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        assert len(CliRunner().invoke(main, ["judge", "--help"]).stdout.splitlines()) <= 45
        shown = self.run("--out", tmp_path, keys="0xq").stdout
        assert shown.count("\n0 not relevant  1 related  2 relevant  3 answers it  ? all keys\n") == 3

    @pytest.mark.parametrize(
        ("kept", "said"),
        [
            (1, "With 19 more queries, "),  # 20 labelled queries decide: docs/start.md
            (20, "These labels are enough for recommend"),
            (
                58,
                "These labels are enough for recommend to decide by.",
            ),
        ],
    )
    def test_which_query_is_next_and_how_many_more_it_takes(self, tmp_path, kept, said):
        folder = shutil.copytree(starter(), tmp_path / "mine")
        rows = (folder / "qrels.txt").read_text().splitlines()
        usual = [query.id for query in load(folder).split("all")]
        own = [
            row for row in rows if row.split()[0] not in usual[kept:]
        ]  # and those of the log, which do not count
        text = "".join(f"{row}\n" for row in own)
        about = json.loads((folder / "dataset.json").read_text())
        (folder / "qrels.txt").write_text(text)
        (folder / "dataset.json").write_text(json.dumps({**about, "counts": {}, "files": {}}))
        shown = CliRunner().invoke(main, ["judge", str(folder), "--list"]).stdout
        found = " ".join(shown.split())
        listed = [query for query in usual if f"{query}: " in found]
        assert f" left. {kept} of 59" in found
        assert f"pairs of {shown.split(chr(10) * 2)[1].partition(':')[0]}. {said}" in found
        assert listed
        assert not set(listed) & set(usual[:kept])

    def test_of_a_complete_pool_no_pair_needs_a_label(self, tmp_path):
        found = " ".join(self.run("--out", tmp_path, "--list").stdout.split())
        assert found.startswith("0 pairs judged. ")  # how many are left is no goal
        needless = "No pair needs a label: one without counts as not relevant (pool: complete), so only grades"
        assert f" show. {needless} above 0" in found
        assert "label pairs all" in found
        assert not any(word in found for word in ("more label", "wherever you stop"))

    def test_what_stands_is_said_before_the_first_pair_and_then_one_line_a_pair(self, tmp_path, monkeypatch):
        monkeypatch.setenv("COLUMNS", "400")
        shown = self.run("--out", tmp_path, keys="00m0q").stdout
        cards = [text.split("\nquery ")[0].strip() for text in shown.split("all keys\n\n")]
        count = json.loads(self.run("--out", tmp_path / "other", "--json").stdout)["left"]
        assert "needs a label" in cards[0]
        two = f"2 pairs judged, {count - 2} left."  # which m shows again
        assert cards[1:] == [f"1 pair judged, {count - 1} left.", two, two, f"3 pairs judged, {count - 3} left."]

    @pytest.mark.parametrize(
        ("decided", "told"),
        [
            (said_of("ship"), "says ship, so it needs no more."),
            (said_of("keep", 174), "says keep; it takes about 170 more labelled queries"),
            (said_of("try", 62), "says try; it takes about 60 more labelled queries"),
            (said_of("try"), "says try; it says what"),
        ],
    )
    def test_what_recommend_asked_for_is_told_while_the_labels_are_those(
        self, tmp_path, monkeypatch, decided, told
    ):
        monkeypatch.setenv("STEELYARD_RUNS", "on")
        folder = shutil.copytree(starter(), tmp_path / "mine", ignore=shutil.ignore_patterns(".steelyard"))
        keep(load(folder), decided)
        words = ["judge", str(folder), "--list"]
        said = " ".join(CliRunner().invoke(main, words).stdout.split())
        usual = "These labels are enough for recommend to decide by."
        assert f"labels recommend {told}" in said
        assert "decide by these" not in said
        rows = (folder / "qrels.txt").read_text().splitlines(keepends=True)
        (folder / "qrels.txt").write_text("".join(row for row in rows if not row.startswith("q12 ")))
        CliRunner().invoke(main, ["check", str(folder), "--accept"])
        said = " ".join(CliRunner().invoke(main, words).stdout.split())
        assert "58 of 59" in said
        assert usual in said

    def test_what_is_said_to_do_for_more_to_judge_can_be_done(self, tmp_path, monkeypatch):
        monkeypatch.setenv("COLUMNS", "400")
        folder = shutil.copytree(starter(), tmp_path / "mine")
        said = " ".join(CliRunner().invoke(main, ["judge", str(folder), "--list"]).stdout.split())
        assert f"add queries to {folder / 'queries.jsonl'}, a line" in said
        assert "move queries.minilm.f16.npy out" in said
        assert (installing("minilm") in said) == bool(missing_modules("minilm"))
        assert f"steelyard check {folder} --acc" in said

        with (folder / "queries.jsonl").open("a") as file:
            file.write('{"id": "new-1", "text": "why do we retry payments"}\n')
        (folder / "queries.minilm.f16.npy").rename(tmp_path / "queries.minilm.f16.npy")
        assert CliRunner().invoke(main, ["check", str(folder), "--accept"]).exit_code == 0
        assert "counts" not in json.loads((folder / "dataset.json").read_text())
        listed = CliRunner().invoke(main, ["judge", str(folder), "--list", "--json", "--embedder", "none"])
        assert {pair["query"] for pair in json.loads(listed.stdout)["next"]} == {"new-1"}

    @pytest.mark.parametrize(
        ("said", "duel"),
        [
            ({}, False),  # labels of queries: what recommend asks for is more queries
            ({"sampled": "duel"}, True),
            (None, True),  # nothing is labelled
        ],
    )
    def test_without_contenders_the_labels_decide_whether_pairs_or_queries_are_asked(self, unstated, said, duel):
        if said is not None:
            self.add(unstated)
            (unstated / "qrels.txt").write_text("q1 0 m1 2\n")
            (unstated / "dataset.json").write_text(json.dumps({"name": "x", **said}))
        listed = CliRunner().invoke(main, ["judge", str(unstated), "--list", "--json", "--embedder", "none"])
        found = json.loads(listed.stdout)

        assert (found["duel"] is not None, found["drawn"] is not None) == (duel, not duel)
        assert found["next"][0]["query"] == found["card"]["pair"][0]

    def test_a_list_has_the_pairs_that_are_asked_and_asks_nothing(self, tmp_path):
        listed = json.loads(self.run("--out", tmp_path, "--list", "--json").stdout)["next"]
        shown = self.run("--out", tmp_path, "--list").stdout
        assert not list(tmp_path.iterdir())
        self.run("--out", tmp_path, keys="11111q")
        asked = [*read_judgments(tmp_path / "judge.jsonl")]

        assert len(listed) == 20  # as docs/commands.md says
        assert [(one["query"], one["entry"]) for one in listed[:5]] == asked
        assert all(one["entry"] in shown for one in listed)
        said, _, pairs = shown.partition("\n\n")  # the conclusion stands first
        assert pairs.startswith(f"{asked[0][0]}: ")
        again = " ".join(said.split()).split("all the same, one key each: steelyard ")[1]
        assert shlex.split(again) == ["judge", str(starter()), "bm25", "rrf(bm25, vector)", "--out", str(tmp_path)]

    def of(self, *words):
        return CliRunner().invoke(main, ["judge", str(starter()), *words], catch_exceptions=False)

    def test_json_asks_nothing(self, tmp_path):
        found = json.loads(self.run("--out", tmp_path, "--json").stdout)

        qrels = load(starter()).qrels
        assert (found["given"], found["left"] > 0) == (0, True)
        assert found["card"]["pair"][1] not in qrels.get(found["card"]["pair"][0], {})
        assert found["comparisons"][0]["challenger"] == "rrf(bm25, vector, k=60)"
        assert not list(tmp_path.iterdir())

    def test_hostile_text_moves_no_terminal(self, tmp_path):
        folder = tmp_path / "set"
        folder.mkdir()
        (folder / "corpus.jsonl").write_text('{"id": "m1", "title": "keys \\u001b[2J", "text": "rotate keys"}\n')
        (folder / "queries.jsonl").write_text('{"id": "q1", "text": "rotate keys"}\n')
        (folder / "qrels.txt").write_text("")
        (folder / "dataset.json").write_text('{"name": "x"}')
        found = CliRunner().invoke(
            main, ["judge", str(folder), "fts", "bm25", "--out", str(tmp_path / "j")], input="q"
        )

        assert "\x1b[2J" not in found.stdout
        assert "keys \\x1b[2J" in found.stdout

    @pytest.fixture
    def unstated(self, tmp_path):
        """A set whose dataset.json does not say how labels are chosen."""
        (tmp_path / "corpus.jsonl").write_text(
            '{"id": "m1", "text": "keys"}\n{"id": "m2", "text": "rotate keys"}\n'
        )
        (tmp_path / "queries.jsonl").write_text('{"id": "q1", "text": "rotate keys"}\n')
        (tmp_path / "qrels.txt").write_text("")
        (tmp_path / "dataset.json").write_text('{"name": "x"}')
        return tmp_path

    def test_a_set_without_labels_says_what_its_first_ones_are(self, unstated):
        before = (unstated / "dataset.json").read_bytes()
        words = ["judge", str(unstated), "fts", "bm25", "--out", str(unstated / "j")]
        CliRunner().invoke(main, words, input="q")
        assert (unstated / "dataset.json").read_bytes() == before  # nothing was judged

        CliRunner().invoke(main, words, input="2q")
        assert (unstated / "dataset.json").read_bytes() == before  # nothing was applied
        CliRunner().invoke(main, [*words, "--apply"])
        assert json.loads((unstated / "dataset.json").read_text()) == {
            "name": "x",
            "sampled": "duel",
            "pool": {"contenders": ["fts", "bm25"], "depth": 10},
        }

    def test_where_nothing_was_written_nothing_is_said_to_be(self, unstated):
        words = ["judge", str(unstated), "fts", "bm25", "--out", str(unstated / "j")]
        CliRunner().invoke(main, words, input="xq")  # an answer that is no label
        done = CliRunner().invoke(main, [*words, "--apply"])
        assert "dataset.json now says" not in done.stdout
        assert json.loads((unstated / "dataset.json").read_text()) == {"name": "x"}

    def test_a_set_with_labels_is_not_touched_before_the_command_that_is_named(self, unstated, monkeypatch):
        monkeypatch.setenv("COLUMNS", "400")
        with (unstated / "queries.jsonl").open("a") as queries:
            queries.write('{"id": "q2", "text": "no such word"}\n')
        (unstated / "qrels.txt").write_text("q2 0 m1 1\n")
        before = (unstated / "dataset.json").read_bytes()
        words = ["judge", str(unstated), "fts", "rrf(fts, bm25)", "--out", str(unstated / "j"), "--judge", "ann"]
        found = CliRunner().invoke(main, words, input="2q")
        assert (unstated / "dataset.json").read_bytes() == before

        named = shlex.split(found.stdout.split("to use them: ")[1].splitlines()[0])
        assert named == ["steelyard", *words[:2], "--out", *words[5:], "--apply"]
        done = CliRunner().invoke(main, named[1:])
        written, _, told = done.stdout.partition("\n")
        kept = [unstated / name for name in ("qrels.txt.bak", "dataset.json.bak")]
        files = [*kept, unstated / "qrels.txt", unstated / "dataset.json"]
        assert written == f"written: {', '.join(map(str, files))}"
        assert '"sampled": "duel"' in told
        assert load(unstated).qrels["q2"] == {"m1": 1}
        assert json.loads((unstated / "dataset.json").read_text()) == {"name": "x", "sampled": "duel"}
        assert "to use them" not in CliRunner().invoke(main, words, input="q").stdout

    def test_what_is_asked_is_said_where_labels_chose_it(self, unstated):
        """Pairs of queries that had labels change nothing in dataset.json, so the next session draws queries."""
        words = ["judge", str(unstated), "--embedder", "none", "--list"]
        first = CliRunner().invoke(main, words).stderr
        (unstated / "qrels.txt").write_text("q1 0 m1 1\n")
        then, asked = (CliRunner().invoke(main, [*words, *option]).stderr for option in ([], ["--duel"]))
        assert "labels; --random asks" in " ".join(first.split())
        assert "labels already; --duel" in " ".join(then.split())
        assert " asks " not in asked

    def test_labels_of_queries_that_have_some_are_copied_and_nothing_is_said_of_the_set(
        self, unstated, monkeypatch
    ):
        monkeypatch.setenv("COLUMNS", "400")
        (unstated / "qrels.txt").write_text("q1 0 m1 1\n")
        before = (unstated / "dataset.json").read_bytes()
        words = ["judge", str(unstated), "fts", "bm25", "--out", str(unstated / "j")]
        found = CliRunner().invoke(main, words, input="2q")
        named = shlex.split(found.stdout.split("to use them: ")[1].splitlines()[0])
        done = " ".join(CliRunner().invoke(main, named[1:]).stdout.split())
        kept = unstated / "qrels.txt.bak"
        assert "(q1 m2), 0 ch" in done
        assert f"steelyard recommend {unstated}" in done
        assert done.endswith(f"cp {kept} {unstated / 'qrels.txt'}")
        assert kept.read_text() == "q1 0 m1 1\n"
        assert load(unstated).qrels == {"q1": {"m1": 1, "m2": 2}}
        assert (unstated / "dataset.json").read_bytes() == before

    def test_the_hash_of_dataset_json_is_that_of_the_labels_and_counts_are_left_out(self, unstated):
        (unstated / "qrels.txt").write_text("q1 m1 1\n")
        digest = hashlib.sha256(b"q1 m1 1\n").hexdigest()
        about = {"name": "x", "counts": {"judgments": 1, "documents": 2}, "files": {"qrels.txt": digest}}
        (unstated / "dataset.json").write_text(json.dumps(about))
        words = ["judge", str(unstated), "fts", "bm25", "--out", str(unstated / "j")]
        CliRunner().invoke(main, words, input="2q")
        undo = CliRunner().invoke(main, [*words, "--apply"]).stdout.partition("to undo:")[2].split()
        assert "counts" not in json.loads((unstated / "dataset.json").read_text())
        assert load(unstated).qrels == {"q1": {"m1": 1, "m2": 2}}

        assert (undo[0], undo[3:5], len(undo)) == ("cp", ["&&", "cp"], 7)
        shutil.copy(*undo[1:3])
        shutil.copy(*undo[5:])
        assert json.loads((unstated / "dataset.json").read_text()) == about
        assert load(unstated).qrels == {"q1": {"m1": 1}}

    def test_the_labels_before_are_kept_and_the_gate_knows_whose_they_are(self, unstated, monkeypatch):
        monkeypatch.chdir(unstated)
        monkeypatch.setenv("COLUMNS", "400")
        first = Path("qrels.txt")
        first.write_text("q1 m1 1\n")
        gate, words = ["gate", ".", "--embedder", "none"], ["judge", ".", "fts", "bm25"]
        CliRunner().invoke(main, [*gate, "bm25", "--update", "--because", "first"])
        CliRunner().invoke(main, words, input="2q")
        copied = "cp qrels.txt.bak qrels.txt\n"
        said = CliRunner().invoke(main, [*words, "--apply"]).stdout
        assert Path("qrels.txt.bak").read_text() == "q1 m1 1\n"
        assert said.endswith(f": {copied}")
        assert "steelyard gate . --update --because 'new labels'\n" in said

        found = CliRunner().invoke(main, gate)
        assert found.exit_code == 2
        assert "steelyard gate . --update" in found.stdout

    def test_who_has_judged_is_named_where_another_name_is_applied(self, unstated):
        words = ["judge", str(unstated), "fts", "bm25", "--out", str(unstated / "j")]
        CliRunner().invoke(main, [*words, "--judge", "ann"], input="2q")
        found = CliRunner().invoke(main, [*words, "--apply"]).stderr
        assert "those of --judge" in " ".join(found.split())

    @pytest.mark.parametrize("option", [(), ("--random",)])
    def test_nothing_is_applied_where_nothing_is_judged(self, unstated, option):
        words = ["judge", str(unstated), "fts", "bm25", "--out", str(unstated / "j"), *option, "--apply"]
        before = {path.name: path.read_bytes() for path in unstated.iterdir()}
        found = CliRunner().invoke(main, words)
        assert (found.exit_code, "apply; judge first" in found.stderr) == (2, True)
        assert {path.name: path.read_bytes() for path in unstated.iterdir()} == before

    def add(self, folder):
        """A second query, so that there is a pair to ask after one is judged."""
        with (folder / "queries.jsonl").open("a") as file:
            file.write('{"id": "q2", "text": "keys"}\n')

    @pytest.mark.parametrize(
        ("keys", "said"), [("zuq", "nothing answers it"), ("xuq", "cannot say"), ("uq", "nothing is judged")]
    )
    def test_what_is_taken_back_is_named(self, unstated, keys, said):
        self.add(unstated)
        words = ["judge", str(unstated), "fts", "bm25", "--out", str(unstated / "j")]
        found = CliRunner().invoke(main, words, input=keys)
        assert any(said in line for line in found.stderr.splitlines() if "back" in line)
        assert "still holds it" not in found.stderr

    def test_the_keys_are_told_to_who_wants_no_notes(self, tmp_path):
        assert self.run("--out", tmp_path, "-q", keys="q").stderr.startswith(
            "0 not relevant  1 related  2 relevant  3 answers it\n"
        )

    @pytest.mark.parametrize(("words", "left"), [((), 3), (("--split", "dev"), 1)])
    def test_the_queries_of_one_split(self, tmp_path, words, left):
        folder = tmp_path / "set"
        folder.mkdir()
        (folder / "corpus.jsonl").write_text('{"id": "m1", "text": "keys"}\n')
        queries = [
            {"id": f"q{at}", "text": "keys", "split": split} for at, split in enumerate(("dev", "test", "test"))
        ]
        (folder / "queries.jsonl").write_text("".join(f"{json.dumps(query)}\n" for query in queries))
        (folder / "qrels.txt").write_text("")
        (folder / "dataset.json").write_text('{"name": "x"}')
        command = ["judge", str(folder), "fts", "bm25", "--out", str(tmp_path / "j"), "--json", *words]
        assert json.loads(CliRunner().invoke(main, command).stdout)["left"] == left

    def test_random_queries_need_no_contenders(self, tmp_path):
        command = ["judge", str(starter()), "--random", "--out", str(tmp_path), "--json"]
        outcome = CliRunner().invoke(main, command)
        assert outcome.exit_code == 0
        assert json.loads(outcome.stdout)["given"] == 0

    def test_an_answer_is_changed_in_its_file_and_applied(self, unstated):
        (unstated / "qrels.txt").write_text("q1 0 m1 1\n")
        words = ["judge", str(unstated), "fts", "bm25", "--out", str(unstated / "j")]
        CliRunner().invoke(main, words, input="2q")
        CliRunner().invoke(main, [*words, "--apply"])
        file = unstated / "j" / "judge.jsonl"
        file.write_text(file.read_text().replace('"grade": 2', '"grade": 3'))
        assert "1 changed (q1 m2)" in CliRunner().invoke(main, [*words, "--apply"]).stdout
        assert load(unstated).qrels == {"q1": {"m1": 1, "m2": 3}}

    @pytest.mark.parametrize("sampled", [None, "random"])
    def test_answers_on_pairs_are_applied_without_their_contenders(self, unstated, monkeypatch, sampled):
        monkeypatch.setenv("COLUMNS", "400")
        (unstated / "qrels.txt").write_text("q1 0 m1 1\n")
        (unstated / "dataset.json").write_text(json.dumps({"name": "x", "sampled": sampled}))
        CliRunner().invoke(main, ["judge", str(unstated), "fts", "bm25"], input="2q")
        apply = ["judge", str(unstated), "--apply"]
        assert "(q1 m2), 0 ch" in CliRunner().invoke(main, apply).stdout
        assert load(unstated).qrels == {"q1": {"m1": 1, "m2": 2}}

        files = {path: path.read_bytes() for path in unstated.rglob("*") if path.is_file()}
        again = CliRunner().invoke(main, apply).stdout
        assert again.startswith(f"no label changed: {unstated / 'qrels.txt'} has your 1 label already\n")
        assert "written" not in again
        assert {path: path.read_bytes() for path in unstated.rglob("*") if path.is_file()} == files

    def test_drawn_queries_and_a_duel_take_nothing_from_each_other(self, unstated):
        with (unstated / "corpus.jsonl").open("a") as corpus:
            corpus.writelines(f'{{"id": "k{at}", "text": "rotate keys"}}\n' for at in range(4))
        before = "q1 0 m1 1\n"
        (unstated / "qrels.txt").write_text(before)
        (unstated / "dataset.json").write_text('{"name": "x", "sampled": "duel"}')
        words = ["judge", str(unstated), "--embedder", "none"]
        CliRunner().invoke(main, [*words, "--random"], input="1q")
        drawn = CliRunner().invoke(main, [*words, "--apply"]).stdout  # the query is not judged in full
        assert drawn.startswith("none of your") and "1 answer" in drawn
        assert (unstated / "qrels.txt").read_text() == before
        assert "labels: 1 added" in CliRunner().invoke(main, [*words, "--duel", "--apply"]).stdout

    def test_where_no_label_came_of_it_applying_says_why_and_how_to_go_on(self, unstated, monkeypatch):
        monkeypatch.setenv("COLUMNS", "400")
        self.add(unstated)
        (unstated / "qrels.txt").write_text("q2 0 m1 1\n")
        (unstated / "dataset.json").write_text('{"name": "x", "sampled": "random"}')
        words = ["judge", str(unstated), "--embedder", "none"]
        CliRunner().invoke(main, words, input="2q")
        done = CliRunner().invoke(main, [*words, "--apply"]).stdout.splitlines()
        assert done[0].startswith("none of your") and "1 answer" in done[0]
        assert done[1:] == [f"go on judging: steelyard {shlex.join(words)}"]

    def test_a_set_that_states_its_labels_is_told_nothing(self, tmp_path):
        found = self.run("--out", tmp_path, keys="q")  # starter states both
        assert "it in dataset.json" not in found.stderr


class TestOtherSets:
    """Ids of notes and of typed queries are the same in several sets; their texts are not."""

    def folder(self, path, asked, words):
        path.mkdir(parents=True)
        rows = [{"id": f"n{at}", "text": f"{word} and more of it"} for at, word in enumerate(words)]
        queries = [{"id": f"own-0{at}", "text": text} for at, text in enumerate(asked, 1)]
        for name, lines in (("corpus", rows), ("queries", queries)):
            (path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (path / "dataset.json").write_text('{"name": "markdown notes"}')  # as importing names every such folder
        return path

    def judge(self, folder, *words, keys=""):
        command = ["judge", str(folder), "fts, bm25", "--out", str(folder.parent / "j"), "--embedder", "none"]
        return CliRunner().invoke(main, [*command, *words], input=keys)

    @pytest.fixture
    def first(self, tmp_path):
        folder = self.folder(tmp_path / "ma", ["more", "it and of"], ["apples", "pears", "plums", "nuts"])
        assert self.judge(folder, keys="321q").exit_code == 0
        return folder

    @pytest.mark.parametrize(
        ("asked", "words", "why"),
        [
            (["of it", "and"], ["apples", "pears", "plums", "nuts"], "there, and asks '"),
            (["more", "it and of"], ["roads", "rails", "ships", "planes"], "have another text here"),
            ([], ["roads"], "own-0"),  # before queries are typed
        ],
    )
    @pytest.mark.parametrize("option", [(), ("--apply",), ("--judge", "ann", "--second-to", "judge")])
    def test_judgments_of_another_set_are_refused(self, first, asked, words, why, option):
        other = self.folder(first.parent / "mb", asked, words)
        kept = {path: path.read_bytes() for path in first.parent.rglob("*") if path.is_file()}
        found = self.judge(other, *option, keys="0q")

        assert found.exit_code == 2
        if asked or not option:
            assert "data set" in found.stderr
            assert why in found.stderr
            assert "--out FOLDER" in found.stderr
        assert {path: path.read_bytes() for path in first.parent.rglob("*") if path.is_file()} == kept

    def test_a_query_of_another_text_is_refused_under_the_same_name(self, first):
        shutil.rmtree(first)
        again = self.folder(first, ["of it", "and"], ["apples", "pears", "plums", "nuts"])
        assert "data set" in self.judge(again, "--json").stderr

    def test_labels_without_their_judgments_are_not_applied(self, first):
        other = self.folder(first.parent / "mb", ["of it"], ["roads"])
        (first.parent / "j" / "judge.jsonl").unlink()
        assert "labels to apply" in self.judge(other, "--apply").stderr

    def test_a_changed_corpus_a_copy_and_files_of_before_go_on(self, first):
        copy = shutil.copytree(first, first.parent / "mc")
        corpus = first / "corpus.jsonl"
        corpus.write_text(corpus.read_text().replace("and more of it", "it and more, of late"))
        file = first.parent / "j" / "judge.jsonl"
        assert [json.loads(self.judge(folder, "--json").stdout)["given"] for folder in (first, copy)] == [3, 3]

        old = ("query", "entry", "grade", "note", "at")
        rows = map(json.loads, file.read_text().splitlines())
        file.write_text("".join(json.dumps({name: row[name] for name in old}) + "\n" for row in rows))
        assert json.loads(self.judge(first, "--json").stdout)["given"] == 3

    def test_only_that_nothing_answers_proves_no_set(self, first):
        (first.parent / "j" / "judge.jsonl").unlink()
        self.judge(first, keys="zq")
        other = self.folder(first.parent / "mb", ["more", "it and of"], ["roads"])
        assert "data set" in self.judge(other, "--json").stderr


def test_check_names_three_of_what_was_judged_and_nothing_before_there_are_labels(tmp_path):
    names = [f"c{at}" for at in range(26)]
    state = {"sampled": "duel", "pool": {"contenders": names, "depth": 10}}
    (tmp_path / "dataset.json").write_text(json.dumps({"name": "x", **state}))
    (tmp_path / "corpus.jsonl").write_text('{"id": "m1", "text": "a"}\n')
    (tmp_path / "queries.jsonl").write_text('{"id": "q1", "text": "a"}\n')
    before = CliRunner().invoke(main, ["check", str(tmp_path)]).stdout
    (tmp_path / "qrels.txt").write_text("q1 0 m1 1\n")
    after = CliRunner().invoke(main, ["check", str(tmp_path)]).stdout

    assert "dataset.json says" not in before
    assert (
        "says how the labelled queries were drawn: chosen because contenders disagree (sampled: duel)\n" in after
    )
    assert "says what was judged: pairs among the first 10 of c0, c1, c2 and 23 more (pool)\n" in after


def test_the_widget_answers_with_the_next_pair(data, tmp_path, monkeypatch):
    pytest.importorskip("anywidget", reason="the extra notebooks is not installed")
    judge = data.judge(CONTENDERS, tmp_path / "j")
    sent = []
    monkeypatch.setattr(judge, "send", sent.append)
    pair = list(judge.session.next)
    for message in ({"do": "open"}, {"do": "give", "pair": pair, "grade": 2, "note": "n"},
                    {"do": "give", "pair": pair, "grade": 2, "note": ""}, {"do": "undo"}):  # fmt: skip
        judge._answer(None, {**message, "number": len(sent) + 1}, None)

    assert [one["given"] for one in sent] == [0, 1, 1, 0]
    assert [one["to"] for one in sent] == [1, 2, 3, 4]
    assert sent[0]["card"]["pair"] == pair == sent[3]["card"]["pair"]
    assert "judged already" in sent[2]["error"]
    json.dumps(sent, allow_nan=False)
    assert judge.to_frame().empty
    assert "rrf" in judge.comparisons()["challenger"][0]
    assert data.judge(CONTENDERS, tmp_path / "drawn", random=True).session.random


class TestDrawn:
    """Whole queries drawn at random."""

    @pytest.fixture
    def folder(self, tmp_path):
        """The starter set with neither labels nor a word about them."""
        made = tmp_path / "set"
        made.mkdir()
        for name in ("corpus.jsonl", "queries.jsonl"):
            (made / name).write_bytes((starter() / name).read_bytes())
        (made / "dataset.json").write_text('{"name": "mine", "as_of": "2026-11-15T00:00:00Z"}')
        (made / "qrels.txt").write_text("")
        return made

    def open(self, folder, out, seed=0):
        return open_judging(load(folder), "fts, bm25", out, seed=seed, random=True, embedder="lsa")

    def finish(self, session, grade=1):
        query = session.next[0]
        while session.next is not None and session.next[0] == query:
            session.give(grade)
        return query

    def test_a_query_counts_once_all_its_pairs_are_judged(self, folder, tmp_path):
        session = self.open(folder, tmp_path / "j")
        session.give(2)
        assert session.qrels.read_text() == ""
        first = self.finish(session)
        second = session.next[0]
        session.give(3)

        assert {line.split()[0] for line in session.qrels.read_text().splitlines()} == {first} != {second}
        assert len(read_judgments(session.file)) > len(session.qrels.read_text().splitlines())

    def test_what_the_judge_cannot_say_is_asked_and_is_no_label(self, folder, tmp_path):
        session = self.open(folder, tmp_path / "j")
        unsure = session.next
        session.give(None)
        first = self.finish(session)
        rows = [line.split() for line in session.qrels.read_text().splitlines()]

        assert {row[0] for row in rows} == {first}  # the query is whole, although one of its pairs has no grade
        assert unsure[1] not in {row[2] for row in rows}
        assert -2 in session.grades()

    def test_a_query_that_nothing_answers_does_not_hold_up_the_others(self, folder, tmp_path):
        session = self.open(folder, tmp_path / "j")
        session.nothing()
        second = self.finish(session)

        assert {line.split()[0] for line in session.qrels.read_text().splitlines()} == {second}
        assert desk(session)["drawn"]["judged"] == 2

    @pytest.mark.parametrize("key", ["id", "_id"])  # ours, and BEIR's
    def test_what_was_said_to_have_no_answer_is_taken_back(self, folder, tmp_path, key):
        data = load(folder)
        source = folder / "queries.jsonl"
        rows = [json.loads(line) for line in source.read_text().splitlines()]
        source.write_text("".join(json.dumps({key: row["id"], "text": row["text"]}) + "\n" for row in rows))
        session = open_judging(data, "fts, bm25", tmp_path / "j", random=True, embedder="lsa")
        query, _ = session.next
        session.nothing()
        said = tmp_path / "j" / "judge.queries.jsonl"
        rows = [json.loads(line) for line in said.read_text().splitlines()]
        assert [row[key] for row in rows if row.get("answerable") is False] == [query]

        session.undo()
        assert "answerable" not in said.read_text()

    def test_its_pairs_are_the_first_ten_of_every_contender(self, folder, tmp_path):
        session = self.open(folder, tmp_path / "j")
        query = self.finish(session)
        data = sy.load(folder)
        data.compare("fts, bm25", limit=10, timed=False, write_runs=tmp_path / "runs")
        shown = {
            line.split()[2]
            for run in (tmp_path / "runs").glob("*.run")
            for line in run.read_text().splitlines()
            if line.split()[0] == query
        }
        assert {entry for _, entry in session.given} == shown

    def test_every_query_is_first_equally_often(self, blank):
        count = len(blank.queries)
        first = [int(drawn_queries(replace(blank, seed=seed))[0]) for seed in range(20 * count)]
        seen = np.bincount(first, minlength=count)
        chi2 = ((seen - 20) ** 2 / 20).sum()
        assert chi2 < count + 4 * np.sqrt(2 * count)  # mean and deviation of chi square with so many degrees

    def test_the_set_says_that_they_were_drawn(self, folder, tmp_path):
        session = self.open(folder, tmp_path / "j")
        session.give(0)
        assert "sampled" not in json.loads((folder / "dataset.json").read_text())
        self.finish(session)
        apply(session)
        assert json.loads((folder / "dataset.json").read_text()) == {
            "name": "mine",
            "as_of": "2026-11-15T00:00:00Z",
            "sampled": "random",
            "pool": {"contenders": ["fts", "bm25"], "depth": 10},
        }

    def test_chosen_labels_stay_beside_drawn_ones_and_are_told_from_them(self, folder, tmp_path):
        queries = [query.id for query in load(folder).queries]
        (folder / "qrels.txt").write_text(
            "".join(f"{query} 0 {load(folder).entries[0].id} 1\n" for query in queries)
        )
        before = {name: (folder / name).read_bytes() for name in ("dataset.json", "qrels.txt")}
        session = self.open(folder, tmp_path / "j")
        drawn = self.finish(session)
        assert {name: (folder / name).read_bytes() for name in before} == before

        done = apply(session)
        now = load(folder)
        assert done.changed == []
        assert now.qrels.keys() == {*queries}
        assert (now.drawn, now.how_drawn[drawn]) == ({drawn}, "random")
        assert {how for query, how in now.how_drawn.items() if query != drawn} == {"by hand"}
        assert self.open(folder, tmp_path / "j").next[0] != drawn  # drawn once, and not again

        for step in done.undo.split(" && "):
            shutil.copy(*shlex.split(step)[1:])
        assert {name: (folder / name).read_bytes() for name in before} == before

    def test_drawn_queries_stay_drawn_where_single_pairs_are_added(self, folder, tmp_path):
        """One label of a query that is drawn; then a pair of another query, which nobody drew."""
        session = self.open(folder, tmp_path / "j")
        drawn = self.finish(session)
        apply(session)
        pairs = open_judging(load(folder), "fts; bm25", tmp_path / "k", embedder="none", random=False)
        while pairs.next[0] == drawn:
            pairs.skip()
        other = pairs.next[0]
        pairs.give(1)
        apply(pairs)
        now = load(folder)
        assert now.sampled == "duel"
        assert (now.drawn, now.how_drawn) == ({drawn}, {drawn: "random", other: "duel"})

    def test_labels_that_were_drawn_are_kept_and_their_queries_not_drawn_again(self, folder, tmp_path):
        queries = [query.id for query in load(folder).split("all")]
        entry = load(folder).entries[0].id
        (folder / "qrels.txt").write_text("".join(f"{query} 0 {entry} 1\n" for query in queries[:40]))
        (folder / "dataset.json").write_text(
            '{"name": "mine", "as_of": "2026-11-15T00:00:00Z", "sampled": "log", "pool": "complete"}'
        )
        session = self.open(folder, tmp_path / "j")
        drawn = self.finish(session)

        assert drawn not in queries[:40]
        assert desk(session)["drawn"]["queries"] == len(queries) - 40
        assert {line.split()[0] for line in session.qrels.read_text().splitlines()} == {*queries[:40], drawn}
        assert state_of(session) == {}

    def test_a_set_says_that_queries_were_drawn_only_while_all_that_have_labels_were(self):
        pool, _ = small()
        known = replace(pool, dataset=replace(pool.dataset, sampled="random", qrels={"q0": {"m00": 1}}))
        assert "sampled" not in to_state(known, False, [("q0", "m01")])
        assert to_state(known, False, [("q0", "m01"), ("q1", "m01")])["sampled"] == "duel"
        assert "sampled" not in to_state(known, True, [("q1", "m01")])

    def test_labels_of_queries_that_have_some_change_nothing_that_a_set_leaves_open(self):
        pool, _ = small()
        known = replace(pool, dataset=replace(pool.dataset, qrels={"q0": {"m00": 1}}))
        assert to_state(known, False, [("q0", "m01")]) == {}
        assert to_state(known, False, [("q1", "m01")]) == {"sampled": "duel"}

    def test_what_a_set_without_labels_says_of_them_is_of_none(self, session):
        """The starter set without its labels still says that all were drawn, and that all is labelled."""
        assert (session.pool.dataset.sampled, session.pool.dataset.complete) == ("all", True)
        said = [to_state(session.pool, *given) for given in ((False,), (False, [("q1", "m")]))]
        assert said == [{}, {"sampled": "duel", "pool": {"contenders": list(session.pool.labels), "depth": 10}}]

    def test_the_lists_of_the_first_session_stay_whichever_session_applies(self, session):
        known = replace(session.pool, dataset=replace(session.pool.dataset, pool=JudgedPool(("fts", "bm25"), 10)))
        assert to_state(known, False, [("q1", "m")]) == {"sampled": "duel"}

    def test_what_they_show_is_the_mean_over_whole_queries(self):
        pool, grades = small()
        order = drawn_order(pool)
        done = [int(at) for at in drawn_queries(pool)[:12]]
        seen = np.full(len(pool), -1)
        seen[order] = np.where(np.isin(pool.query[order], done), grades[order], -1)
        half = order[pool.query[order] == drawn_queries(pool)[12]][0]
        seen[half] = 3
        (found,) = standings(pool, seen, judged_whole(pool, seen))

        means = [
            sum(
                grades[at] / 3 * (pool.gain[1, at] - pool.gain[0, at])
                for at in range(len(pool))
                if pool.query[at] == query
            )
            for query in done
        ]
        assert found.delta == pytest.approx(np.mean(means), abs=1e-12)
        half_width = 2.200985 * np.std(means, ddof=1) / np.sqrt(12)  # t of 11 degrees, 97.5%: tables
        assert found.high - found.delta == pytest.approx(half_width, abs=1e-6)

    def test_the_command_says_what_it_writes(self, folder, tmp_path):
        words = ["judge", str(folder), "fts", "bm25", "--random", "--out", str(tmp_path / "j")]
        found = CliRunner().invoke(main, words, input="1" * 30 + "q", catch_exceptions=False)
        assert "queries are judged" in " ".join(found.stdout.split())
        CliRunner().invoke(main, [*words, "--apply"], catch_exceptions=False)
        assert load(folder).sampled == "random"

        found = CliRunner().invoke(main, [*words, "--second-to", "ann"])
        assert found.exit_code == 2
