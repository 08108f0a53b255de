"""Judging: what is pooled, in which order, what is saved, what the labels show."""

import hashlib
import json
import re
import shlex
import shutil
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from shared import STARTER, contents, run, tabled, write_set

import steelyard_eval as sy
from steelyard_eval.cli import judge_keys, judge_texts
from steelyard_eval.datasets import load
from steelyard_eval.datasets.labels import JudgedPool
from steelyard_eval.notebook.label.apply import apply
from steelyard_eval.notebook.label.desk import labelling_state
from steelyard_eval.notebook.label.judgment_file import Judgment, agreement, read_judgments
from steelyard_eval.notebook.label.open import open_judging
from steelyard_eval.notebook.label.pool import drawn_queries, pooled
from steelyard_eval.notebook.label.screen import Screen
from steelyard_eval.notebook.label.session import Session
from steelyard_eval.notebook.label.statement import state_of, to_state
from steelyard_eval.recording.saved_runs import RunFacts, SavedRun

CONTENDERS = "bm25, rrf(bm25, vector)"


@pytest.fixture(scope="module")
def blank(data, tmp_path_factory):
    """The starter set as if nobody had judged it: a pool of it."""
    dataset = replace(data.dataset, qrels={})
    return open_judging(dataset, CONTENDERS, tmp_path_factory.mktemp("j"), workspace=lambda: data.workspace).pool


@pytest.fixture
def session(blank, tmp_path):
    return Session(blank, tmp_path / "judgments", now=lambda: 1_790_000_000.0)


def press(screen, keys):
    for key in keys:
        screen.press(key)


def judged(folder, *words, keys=""):
    """The command over a folder, with the keys that are pressed."""
    return run("judge", folder, *words, typed=keys)


class TestScreen:
    """A query with what was found for it."""

    @pytest.fixture
    def screen(self, session):
        return Screen(session)

    def test_the_pool_of_a_query_is_on_one_screen_and_says_nothing_of_who_found_what(self, screen, blank):
        found = screen.to_json(labelling_state(screen.session))
        (at,) = [at for at, query in enumerate(blank.queries) if query.id == screen.query]
        pooled = {blank.pair(pair) for pair in np.flatnonzero(blank.query == at).tolist()}
        assert set(screen.pairs) == pooled
        assert len(found["rows"]) == len(pooled) == len(screen.pairs)
        assert {*found["rows"][0]} == {"mark", "title", "text"}
        assert set(found["card"]) == {"pair", "query", "title", "parts", "facts"}

    def test_keys_move_grade_and_regrade_and_the_cursor_goes_to_what_is_open(self, screen):
        first, second, third, *_ = screen.pairs
        press(screen, "j2kj")
        assert screen.pair == third  # 2 graded the second; the third was next, and k and j lead back to it
        press(screen, "k3kk")
        assert screen.pair == first
        assert [(pair, one.grade) for pair, one in screen.session.given.items()] == [(second, 3)]
        query = screen.query
        press(screen, "x" * (len(screen.pairs) - 1))
        assert screen.query != query  # all of it is answered

    def test_who_says_that_nothing_answers_a_query_with_relevant_labels_is_told_which(self, screen):
        query = screen.query
        press(screen, "3")
        assert query in screen.press("z")

    def test_the_query_that_is_left_is_done_and_one_undo_takes_that_back(self, screen, blank):
        query, count = screen.query, len(screen.pairs)
        press(screen, "2l")
        again = Screen(Session(blank, screen.session.folder))
        assert again.query == screen.query != query
        assert again.session.qrels.read_text().count("\n") == 1  # what was left has no grade
        press(again, "h")
        marks = [row["mark"] for row in again.to_json(labelling_state(again.session))["rows"]]
        assert (again.query, marks) == (query, ["2", *"x" * (count - 1)])
        press(again, "u")
        assert (again.query, again.at, len(again.session.given)) == (query, 1, 1)
        press(again, "zu")
        assert (again.query, again.at) == (query, 1)

    def test_how_far_it_is_uses_the_number_that_recommend_prints(self, data, blank, tmp_path):
        """Of 20 labelled queries (docs/start.md) none has a label: the labels are the pairs of the first 20."""
        session = Session(blank, tmp_path, random=True)
        pairs = sum(len(pairs) for pairs in [*session.pairs_by_query.values()][:20])
        found = labelling_state(session)
        assert found["drawn"]["needed"] == 20
        assert found["drawn"]["pairs"] == pairs
        assert Screen(session).to_json(found)["progress"].startswith("query 1 of 20, about ")
        for pair in next(iter(session.pairs_by_query.values())):
            session.give(1, pair=pair)
        assert labelling_state(session)["sentence"].startswith("Query 2 of 20, about ")
        session.decided = SavedRun(1, "", "recommend", RunFacts(verdict="try", labels_needed=31))
        assert labelling_state(session)["drawn"]["needed"] == 30  # one query is labelled since
        session.decided = SavedRun(1, "", "recommend", RunFacts(verdict="try", labels_needed=200))
        assert "about 140 new queries" in labelling_state(session)["sentence"]  # 199 less 58

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
            session.give(grade, "reason" if grade == 3 else "")
            assert read_judgments(session.file)[pair].grade == grade
        first, line, last = (json.loads(line) for line in session.file.read_text().splitlines())
        query, entry = line["query"], line["entry"]
        about = {
            "dataset": session.pool.dataset.path.name,
            "query_text": texts[1],
            "digest": line["digest"],
            "drawn": False,
        }
        said = {"grade": 3, "note": "reason", "at": "2026-09-21T14:13:20Z"}  # date -u -d @1790000000
        assert line == {"query": query, "entry": entry, **said, **about}
        assert (first["grade"], last["grade"]) == (0, 1)
        assert session.qrels.read_text().splitlines()[1] == f"{query} 0 {entry} 3"

    def test_a_session_goes_on_where_it_was_left_and_undo_takes_back_the_last_one(self, session, blank):
        first = session.next
        assert session.undo() == []
        session.give(2)
        second = session.next
        session.give(1)
        again = Session(blank, session.folder)
        assert (again.next, again.left, list(again.given)) == (session.next, session.left, [first, second])
        session.undo()
        assert [(one.query, one.entry) for one in session.undo()] == [session.next] == [first]
        assert read_judgments(session.file) == {}

    def test_what_is_taken_back_is_asked_again_be_it_copied_into_the_data_set(self, session, blank):
        first = session.next
        session.give(2)
        held = {first[0]: {first[1]: 2}}
        again = Session(replace(blank, dataset=replace(blank.dataset, qrels=held)), session.folder)
        assert again.counted() == (1, 1, 0)
        again.undo()
        assert again.next == first
        assert again.labels == held  # the label stays till there is another one
        again.give(3)
        assert again.qrels.read_text() == f"{first[0]} 0 {first[1]} 3\n"

    def test_another_grade_takes_the_place_of_the_first(self, session):
        pair = session.next
        for grade in (2, 2):
            session.give(grade, pair=pair)
        other = session.next
        session.give(0)
        session.nothing(other)
        session.give(1, pair=pair)  # so something answers the query
        assert [(of, one.grade) for of, one in session.given.items()] == [(other, 0), (pair, 1)]

    def test_grades_and_names_are_checked(self, session, blank, tmp_path):
        for wrong, why in (
            (lambda: session.give(4), "0, 1, 2,"),
            (lambda: session.give(2, pair=("q", "m")), "not one of the"),
            (lambda: Session(blank, tmp_path, "../ann"), "letters, digits"),
            (lambda: Session(blank, tmp_path, "ann", "ann"), "their own second judge"),
            (lambda: Session(blank, tmp_path, "bob", "ann"), "ann has no labels"),
        ):
            with pytest.raises(sy.ConfigError, match=why):
                wrong()

    @tabled
    def test_what_would_be_no_line_of_qrels_is_no_judgment(self, session, blank, changed):
        session.give(2)
        line = {"query": "q1", "entry": "e", "grade": 2, "note": "", "at": ""}
        with session.file.open("ab") as file:
            text = changed if isinstance(changed, str) else json.dumps(line | changed) + "\n"
            file.write(text.encode("latin-1"))
        with pytest.raises(sy.DataError, match=r"line 2.*is|read the judgments"):
            Session(blank, session.folder)

    def test_a_second_judge_sees_the_same_pairs_shuffled_and_no_grade(self, session, blank):
        pairs = []
        for grade in (0, 1, 2, 3) * 5:
            pairs.append(session.next)
            session.give(grade)
        second = Session(blank, session.folder, "bob", session.judge)
        seen = []
        while second.next is not None:
            screen = Screen(second)
            assert not any(row["mark"] for row in screen.to_json(labelling_state(second))["rows"][screen.at :])
            seen.append(second.next)
            second.give(0)
        assert sorted(seen) == sorted(pairs)
        assert seen != pairs


def test_kappas_are_those_of_the_textbook():
    def of(first, second):
        one, other = (
            {("q", f"m{at}"): Judgment("q", f"m{at}", grade, "", "") for at, grade in enumerate(grades)}
            for grades in (first, second)
        )
        return agreement(one, other)

    # 50 proposals: both yes 20, both no 15, one alone 5 and 10: observed .7, by chance .5, kappa .4
    found = of([1] * 25 + [0] * 25, [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15)
    assert found == {"pairs": 50, "equal": 0.7, "kappa": pytest.approx(0.4), "weighted": pytest.approx(0.4)}
    assert of([2, 2], [2, 2])["kappa"] is None
    assert of([], []) == {"pairs": 0, "equal": None, "kappa": None, "weighted": None}


class TestCommand:
    """`steelyard judge`."""

    def run(self, *words, keys=""):
        return judged(STARTER, "bm25", "rrf(bm25, vector)", *words, keys=keys)

    def test_keys_grade_undo_and_quit(self, tmp_path):
        found = self.run("--out", tmp_path, keys="0mu3wn" + "why not\n" + "1q")
        given = list(read_judgments(tmp_path / "judge.jsonl").values())
        assert (found.exit_code, (tmp_path / "judge.qrels.txt").exists()) == (0, True)
        assert [(one.grade, one.note) for one in given] == [(3, ""), (1, "why not")]

    def test_no_answer_to_a_query_with_relevant_labels_is_contradicted(self, tmp_path, monkeypatch):
        """The expected entries are read from the data set's own file."""
        monkeypatch.setenv("COLUMNS", "400")
        found = self.run("--out", tmp_path / "j", keys="zq")
        ((query, _),) = read_judgments(tmp_path / "j" / "judge.jsonl")
        rows = [line.split() for line in (STARTER / "qrels.txt").read_text().splitlines()]
        relevant = [entry for name, _, entry, grade in rows if name == query and grade != "0"]
        assert relevant and f"labels call {', '.join(relevant[:3])} relevant" in found.stdout

    @tabled
    def test_without_contenders_the_labels_decide_whether_pairs_or_queries_are_asked(self, unstated, said, duel):
        if said is not None:
            with (unstated / "queries.jsonl").open("a") as file:
                file.write('{"id": "q2", "text": "keys"}\n')  # so that there is a pair to ask after one is judged
            (unstated / "qrels.txt").write_text("q1 0 m1 2\n")
            (unstated / "dataset.json").write_text(json.dumps({"name": "x", **said}))
        found = json.loads(judged(unstated, "--list", "--json", "--embedder", "none").stdout)
        assert (found["duel"] is not None, found["drawn"] is not None) == (duel, not duel)
        assert found["next"][0]["query"] == found["card"]["pair"][0]

    def test_a_list_has_the_pairs_that_are_asked_and_asks_nothing(self, tmp_path):
        listed = json.loads(self.run("--out", tmp_path, "--list", "--json").stdout)["next"]
        shown = self.run("--out", tmp_path, "--list").stdout
        assert not list(tmp_path.iterdir())
        self.run("--out", tmp_path, keys="11111q")
        asked = [*read_judgments(tmp_path / "judge.jsonl")]
        assert len(listed) == 20  # as docs/labels.md says
        assert [(one["query"], one["entry"]) for one in listed[:5]] == asked
        assert all(one["entry"] in shown for one in listed)

    @tabled
    def test_a_screen_fills_the_terminal_and_counts_what_does_not_fit(self, height, count, at):
        card = {"query": "keys", "parts": [("text", "word " * 200)], "facts": ""}
        rows = [{"mark": "", "title": f"entry {place}", "text": "words"} for place in range(count)]
        text = judge_texts.screen({"progress": "", "rows": rows, "at": at, "card": card}, height)
        lines = text.splitlines()
        assert len(lines) < max(height, 18)  # a line is left for the cursor
        assert [line.split()[3:] for line in lines if line.startswith("> ")] == [["entry", str(at)]]
        left_out = [int(number) for number in re.findall(r"\.\.\. (\d+) (?:above|below)", text)]
        assert text.count("entry ") - 1 + sum(left_out) == count  # less the one of the keys

    def test_arrows_are_the_keys_that_move(self, monkeypatch):
        pressed = iter(("\x1b[A", "\x1bOB", "\x1b[C", "\x1b[D", "\x1b[5~", "N", "\x1b"))
        monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
        monkeypatch.setattr(judge_keys.click, "getchar", lambda: next(pressed))
        assert [judge_keys._key() for _ in range(7)] == ["k", "j", "l", "h", "", "n", "q"]

    def test_hostile_text_moves_no_terminal(self, tmp_path):
        entry = {"id": "m1", "title": "keys \x1b[2J", "text": "rotate keys"}
        found = self.judge(write_set(tmp_path, [entry], ["rotate keys"]), keys="q")
        assert "\x1b[2J" not in found.stdout
        assert "keys \\x1b[2J" in found.stdout

    @pytest.fixture
    def unstated(self, tmp_path):
        """A set whose dataset.json does not say how labels are chosen."""
        return write_set(tmp_path, ["keys", "rotate keys"], ["rotate keys"], name="x")

    def judge(self, folder, *words, keys=""):
        return judged(folder, "fts", "bm25", "--out", folder / "j", *words, keys=keys)

    def test_a_set_with_labels_is_not_touched_before_the_command_that_is_named(self, unstated, monkeypatch):
        monkeypatch.setenv("COLUMNS", "400")
        with (unstated / "queries.jsonl").open("a") as queries:
            queries.write('{"id": "q2", "text": "no such word"}\n')
        (unstated / "qrels.txt").write_text("q2 0 m1 1\n")
        before = (unstated / "dataset.json").read_bytes()
        words = [str(unstated), "fts", "rrf(fts, bm25)", "--out", str(unstated / "j"), "--judge", "ann"]
        found = judged(*words, keys="20q")
        assert (unstated / "dataset.json").read_bytes() == before
        named = shlex.split(found.stdout.split("to use them: ")[1].splitlines()[0])
        assert named == ["steelyard", "judge", *words, "--apply"]
        judged(*named[2:])
        for name in ("qrels.txt.bak", "dataset.json.bak"):
            assert (unstated / name).exists()
        assert load(unstated).qrels["q2"] == {"m1": 1}
        assert load(unstated).sampling_by_query == {"q1": "random", "q2": "unknown"}
        assert "to use them" not in judged(*words, keys="q").stdout

    def test_the_hash_of_dataset_json_is_that_of_the_labels_and_counts_are_left_out(self, unstated):
        (unstated / "qrels.txt").write_text("q1 m1 1\n")
        digest = hashlib.sha256(b"q1 m1 1\n").hexdigest()
        about = {"name": "x", "counts": {"judgments": 1, "documents": 2}, "files": {"qrels.txt": digest}}
        (unstated / "dataset.json").write_text(json.dumps(about))
        self.judge(unstated, keys="2q")
        undo = self.judge(unstated, "--apply").stdout.partition("to undo:")[2].split()
        assert "counts" not in json.loads((unstated / "dataset.json").read_text())
        assert load(unstated).qrels == {"q1": {"m1": 1, "m2": 2}}
        assert (undo[0], undo[3:5], len(undo)) == ("cp", ["&&", "cp"], 7)
        shutil.copy(*undo[1:3])
        shutil.copy(*undo[5:])
        assert json.loads((unstated / "dataset.json").read_text()) == about
        assert load(unstated).qrels == {"q1": {"m1": 1}}

    @pytest.mark.parametrize("option", [(), ("--random",)])
    def test_nothing_is_applied_where_nothing_is_judged(self, unstated, option):
        before = {path.name: path.read_bytes() for path in unstated.iterdir()}
        found = self.judge(unstated, *option, "--apply")
        assert (found.exit_code, "apply; judge first" in found.stderr) == (2, True)
        assert {path.name: path.read_bytes() for path in unstated.iterdir()} == before

    @pytest.mark.parametrize(("words", "left"), [((), 3), (("--split", "dev"), 1)])
    def test_the_queries_of_one_split(self, tmp_path, words, left):
        queries = [{"id": f"q{at}", "text": "keys", "split": ("dev", "test")[at > 0]} for at in range(3)]
        folder = write_set(tmp_path, ["keys"], queries)
        assert json.loads(self.judge(folder, "--json", *words).stdout)["left"] == left

    def test_queries_that_find_nothing_are_counted_and_named(self, unstated, monkeypatch):
        monkeypatch.setenv("COLUMNS", "1000")
        with (unstated / "queries.jsonl").open("a") as queries:
            queries.writelines(f'{{"id": "q{at}", "text": "zzz{at}"}}\n' for at in range(2, 6))
        (unstated / "qrels.txt").write_text("q2 0 m1 1\n")  # it finds nothing, and has a label
        said = self.judge(unstated, keys="20q").stdout
        assert "No list holds anything for 3 queries without labels (q3, q4, q5). " in said
        assert "all queries have labels" not in said
        (unstated / "qrels.txt").write_text("".join(f"q{at} 0 m1 1\n" for at in range(1, 6)))
        said = self.judge(unstated, keys="20q").stdout
        assert ("No list holds" in said, "all queries have labels" in said) == (False, True)

    @pytest.mark.parametrize("sampled", [None, "random"])
    def test_answers_on_pairs_are_applied_without_contenders_and_changed_in_their_file(self, unstated, sampled):
        (unstated / "qrels.txt").write_text("q1 0 m1 1\n")
        (unstated / "dataset.json").write_text(json.dumps({"name": "x", "sampled": sampled}))
        judged(unstated, "fts", "bm25", keys="2q")
        judged(unstated, "--apply")
        assert load(unstated).qrels == {"q1": {"m1": 1, "m2": 2}}
        files = contents(unstated)
        assert "written" not in judged(unstated, "--apply").stdout
        assert contents(unstated) == files
        file = unstated / "judgments" / "judge.jsonl"
        file.write_text(file.read_text().replace('"grade": 2', '"grade": 3'))
        assert "1 changed (q1 m2)" in judged(unstated, "--apply").stdout
        assert load(unstated).qrels == {"q1": {"m1": 1, "m2": 3}}
        corpus = unstated / "corpus.jsonl"
        corpus.write_text(
            "".join(row for row in corpus.read_text().splitlines(keepends=True) if '"m2"' not in row)
        )
        (unstated / "qrels.txt").write_text("q1 0 m1 1\n")  # as an import leaves them whose source lost m2
        judged(unstated, "--apply")
        assert load(unstated).qrels == {"q1": {"m1": 1}}


class TestOtherSets:
    """Ids of notes and of typed queries are the same in several sets; their texts are not."""

    def folder(self, path, asked, words):
        queries = [{"id": f"own-0{at}", "text": text} for at, text in enumerate(asked, 1)]
        name = "markdown notes"  # as importing names every such folder
        return write_set(path, [f"{word} and more of it" for word in words], queries, name=name)

    def judge(self, folder, *words, keys=""):
        words = ("fts, bm25", "--out", folder.parent / "j", "--embedder", "none", *words)
        return judged(folder, *words, keys=keys)

    @pytest.fixture
    def first(self, tmp_path):
        folder = self.folder(tmp_path / "ma", ["more", "it and of"], ["apples", "pears", "plums", "nuts"])
        assert self.judge(folder, keys="321q").exit_code == 0
        return folder

    @tabled
    @pytest.mark.parametrize("option", [(), ("--apply",), ("--judge", "ann", "--second-judge-of", "judge")])
    def test_judgments_of_another_set_are_refused(self, first, asked, words, why, option):
        other = self.folder(first.parent / "mb", asked, words)
        kept = contents(first.parent)
        found = self.judge(other, *option, keys="0q")
        assert found.exit_code == 2
        assert (why in found.stderr and "--out FOLDER" in found.stderr) or (option and not asked)
        assert contents(first.parent) == kept

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

    def test_neither_labels_without_judgments_nor_that_nothing_answers_prove_a_set(self, first):
        other = self.folder(first.parent / "mb", ["more", "it and of"], ["roads"])
        (first.parent / "j" / "judge.jsonl").unlink()
        assert "labels to apply" in self.judge(other, "--apply").stderr
        self.judge(first, keys="zq")
        assert "data set" in self.judge(other, "--json").stderr


def test_the_widget_answers_with_the_next_pair(data, tmp_path, monkeypatch):
    pytest.importorskip("anywidget", reason="the extra notebooks is not installed")
    judge = data.judge(CONTENDERS, tmp_path / "j")
    sent = []
    monkeypatch.setattr(judge, "send", sent.append)
    pair = list(judge.session.next)
    for do, of, more in (("open", [], {}), ("2", pair, {"note": "n"}), ("2", pair, {"note": ""}), ("u", pair, {})):
        judge._answer(None, {"do": do, "pair": of, **more, "number": len(sent) + 1}, None)
    assert [(one["to"], one["given"]) for one in sent] == [(1, 0), (2, 1), (3, 1), (4, 0)]
    assert sent[0]["card"]["pair"] == pair == sent[3]["card"]["pair"]
    assert "cursor" in sent[2]["message"]  # a key that was pressed twice grades nothing else
    json.dumps(sent, allow_nan=False)
    assert judge.to_frame().empty


class TestDrawn:
    """Whole queries drawn at random."""

    @pytest.fixture
    def folder(self, tmp_path):
        """The starter set with neither labels nor a word about them."""
        made = shutil.copytree(STARTER, tmp_path / "set", ignore=shutil.ignore_patterns(".*", "*.npy", "*.gz"))
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
        """What the judge cannot say is no label; a query that nothing answers does not hold up the others."""
        session = self.open(folder, tmp_path / "j")
        unsure = session.next
        session.give(None)
        assert session.qrels.read_text() == ""
        first = self.finish(session)
        session.nothing()
        third = self.finish(session)
        session.give(3)
        rows = [line.split() for line in session.qrels.read_text().splitlines()]
        assert {row[0] for row in rows} == {first, third}
        assert unsure[1] not in {row[2] for row in rows if row[0] == first}
        assert -2 in session.grades()
        assert labelling_state(session)["drawn"]["judged"] == 3

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

    def test_every_query_is_first_equally_often(self, blank):
        count = len(blank.queries)
        first = [int(drawn_queries(replace(blank, seed=seed))[0]) for seed in range(20 * count)]
        seen = np.bincount(first, minlength=count)
        chi2 = ((seen - 20) ** 2 / 20).sum()
        assert chi2 < count + 4 * np.sqrt(2 * count)  # mean and deviation of chi square with so many degrees

    def test_chosen_labels_stay_beside_drawn_ones_and_are_told_from_them(self, folder, tmp_path):
        queries, entry = [query.id for query in load(folder).queries], load(folder).entries[0].id
        (folder / "qrels.txt").write_text("".join(f"{query} 0 {entry} 1\n" for query in queries))
        before = {name: (folder / name).read_bytes() for name in ("dataset.json", "qrels.txt")}
        session = self.open(folder, tmp_path / "j")
        drawn = self.finish(session)
        assert {name: (folder / name).read_bytes() for name in before} == before
        done = apply(session)
        now = load(folder)
        assert done.changed == []
        assert now.qrels.keys() == {*queries}
        assert (now.random_queries, now.sampling_by_query[drawn]) == ({drawn}, "random")
        assert {how for query, how in now.sampling_by_query.items() if query != drawn} == {"unknown"}
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
        assert (now.random_queries, now.sampling_by_query) == ({drawn}, {drawn: "random", other: "duel"})

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
        assert labelling_state(session)["drawn"]["queries"] == len(queries) - 40
        assert {line.split()[0] for line in session.qrels.read_text().splitlines()} == {*queries[:40], drawn}
        assert state_of(session) == {}

    def test_a_query_whose_labels_are_completed_for_another_list_has_the_pool_of_both(self, folder, tmp_path):
        session = self.open(folder, tmp_path / "j")
        query = self.finish(session)
        apply(session)
        again = open_judging(load(folder), "vector", tmp_path / "k", random=True, embedder="lsa")
        while pair := next((pair for pair in again.pairs_by_query[query] if not again.judged(pair)), None):
            again.give(0, pair=pair)
        apply(again)
        known = load(folder)
        assert known.pool_of(query) == JudgedPool(("fts", "bm25", "vector"), 10)
        assert known.random_queries == {query}

    @tabled
    def test_what_a_set_is_made_to_say_of_its_labels(self, about, pool, drawn, pairs, said):
        rng = np.random.default_rng(0)
        found = {name: [[f"m{e:02d}" for e in rng.permutation(60)[:10]] for _ in range(20)] for name in "ab"}
        dataset = sy.load({"m": "x"}, {f"q{q}": f"x{q}" for q in range(20)}, {"q0": ["m"]}).dataset
        own = pooled(replace(dataset, qrels={}), found, dataset.queries, 0)
        known = {"qrels": {"q0": {"m00": 1}}, "pool": msgspec.convert(pool, JudgedPool | None)} | about
        held = replace(own, dataset=replace(own.dataset, **known))
        assert to_state(held, drawn, [(query, "m01") for query in pairs]) == said


def test_no_pair_is_named_where_none_changed():
    assert [judge_texts._bracketed(pairs) for pairs in ([], [("q", "e")])] == ["", " (q e)"]
