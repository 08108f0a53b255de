"""Loading data sets: what is read, every fault by its place, and how queries are split."""

import gzip
import hashlib
import io
import json
import pickle
import re
import shutil
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from shared import STARTER, beside, run, tabled, write_set

from steelyard import Entry, SearchConfig, find_system
from steelyard.base.errors import ConfigError, DataError, MachineError
from steelyard.base.files import lines, open_unpacked, read_text
from steelyard.memory.text import render
from steelyard_eval.common.configurations import lists_alone
from steelyard_eval.datasets import check, load, tuning_queries
from steelyard_eval.datasets.corpus_and_queries import read_queries
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.in_memory import load_dict
from steelyard_eval.datasets.second_labels import judged_twice
from steelyard_eval.extensions.usage.session import records_of
from steelyard_eval.extensions.usage.transcripts import read_ubi
from steelyard_eval.recording.saved_runs import keep
from steelyard_eval.result.structs import Answer, DataFacts, Provenance, Result

TABLES = beside(__file__)
ENTRIES, QUERIES = ([row for (row,) in TABLES[name]] for name in ("entries", "queries"))
QRELS = "q1 0 e1 2\nq1 0 e2 0\nq2 0 e2 1\n"
MANIFEST = {"name": "tiny", "as_of": "2026-11-22T00:00:00Z", "text_for_embedding": "{title} said: {text}"}
MIDNIGHT = 1795305600.0  # date -u -d 2026-11-22 +%s
VECTOR_FILES = {"corpus.m.f16.npy": 3, "corpus.l0.m.f16.npy": 3, "queries.m.f16.npy": 2}


def jsonl(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def vectors(rows):
    return np.arange(1, rows * 4 + 1, dtype=np.float16).reshape(rows, 4)


def write(folder, name, content):
    """Write text, bytes, an array or (as JSON) a dictionary; None removes the file."""
    path = folder / name
    if content is None:
        path.unlink()
    elif isinstance(content, np.ndarray):
        np.save(path, content, allow_pickle=True)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(json.dumps(content) if isinstance(content, dict) else content, encoding="utf-8")


@pytest.fixture
def tiny(tmp_path):
    """Return the folder of a sound set with vectors."""
    folder = write_set(tmp_path / "tiny", ENTRIES, QUERIES, QRELS, **MANIFEST)
    for name, rows in VECTOR_FILES.items():
        write(folder, name, vectors(rows))
    return folder


def faults_after(folder, changes):
    """Faults of the set after these files were replaced."""
    for name, content in changes.items():
        write(folder, name, content)
    report = check(folder)
    assert report.dataset is None
    return report.faults


def sealing(folder, *names):
    """What `dataset.json` says of these files."""
    return {"files": {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}}


class TestSoundSet:
    def test_everything_is_read(self, tiny):
        layer = vectors(3)
        layer[1] = 0  # an entry may lack a layer
        write(tiny, "corpus.l0.m.f16.npy", layer)
        about = MANIFEST | sealing(tiny, "qrels.txt", "corpus.m.f16.npy") | {"license": "MIT"}
        write(tiny, "dataset.json", about)
        dataset = load(str(tiny))
        assert (dataset.name, dataset.path, dataset.as_of, dataset.licence) == ("tiny", tiny, MIDNIGHT, "MIT")
        assert [e.id for e in dataset.entries] == ["e1", "e2", "e3"]
        assert [q.id for q in dataset.queries] == ["q1", "q2"]
        assert dataset.qrels == {"q1": {"e1": 2, "e2": 0}, "q2": {"e2": 1}}
        assert (dataset.feedback, dataset.notices) == (None, ())
        assert set(dataset.vectors) == {("m", "text"), ("m", "l0")}
        assert isinstance(dataset.vectors["m", "text"], np.memmap)
        assert np.array_equal(dataset.vectors["m", "text"], vectors(3))
        assert np.array_equal(dataset.query_vectors["m"], vectors(2))

    def test_compressed_files_give_the_same_set_and_hash(self, tiny):
        plain = load(tiny)
        for name in ("corpus.jsonl", "queries.jsonl"):
            write(tiny, f"{name}.gz", gzip.compress((tiny / name).read_bytes()))
            write(tiny, name, None)
        packed = load(tiny)
        assert (packed.entries, packed.sha256) == (plain.entries, plain.sha256)

    @pytest.mark.parametrize(
        ("file", "content", "differ"),
        [
            ("qrels.txt", QRELS + "q1 0 e3 0\n", (True, False)),
            ("corpus.jsonl", jsonl(ENTRIES) + "\n", (True, False)),
            ("dataset.json", MANIFEST | {"description": "other words"}, (False, False)),
            ("queries.m.f16.npy", vectors(2) + np.float16(1), (False, True)),
        ],
    )
    def test_the_hashes_follow_the_contents_and_the_vectors(self, tiny, file, content, differ):
        before = load(tiny)
        write(tiny, file, content)
        after = load(tiny)
        assert (after.sha256 != before.sha256, after.vectors_sha256 != before.vectors_sha256) == differ

    def test_line_ends_byte_order_marks_and_separators_inside_strings_do_no_harm(self, tiny):
        records = [ENTRIES[0], {"id": "e2", "text": "a\u2028b"}, ENTRIES[2]]
        text = "\r\n".join(json.dumps(r, ensure_ascii=False) for r in records)
        write(tiny, "corpus.jsonl", b"\xef\xbb\xbf" + text.encode())
        write(tiny, "qrels.txt", b"\xef\xbb\xbf" + QRELS.replace("\n", "\r\n").encode())
        dataset = load(tiny)
        assert [e.text for e in dataset.entries] == ["Hello", "a\u2028b", "Well"]
        assert dataset.qrels["q1"]["e1"] == 2


# One fault of each kind: of a file, of a line, of a field of dataset.json, of vectors


stored = io.BytesIO()
np.save(stored, vectors(3))
ARRAY, PACKED = stored.getvalue(), gzip.compress(jsonl(ENTRIES).encode())
WITHOUT_VECTORS = dict.fromkeys(VECTOR_FILES)
PARTS = {
    "a gzip file": [PACKED[:-12], b"not gzip at all", gzip.compress(b"")[:10] + b"\xff" * 20],
    "an array": [ARRAY[:-1], ARRAY[:40], b"", ARRAY.replace(b"(3, 4)", b"(9**9)")],
}
"""What is cut, empty, of another form, broken."""


@pytest.mark.parametrize(
    ("changes", "file", "rule"),
    [
        *(({name: None}, name, "is missing") for name in ("dataset.json", "corpus.jsonl", "queries.jsonl")),
        ({"corpus.jsonl.gz": PACKED}, "corpus.jsonl", "exists beside corpus.jsonl.gz"),
        ({"qrels.tsv": "q1\te1\t2\n"}, "qrels.txt", "exists beside qrels.tsv"),
        ({"corpus.jsonl": "\n \n", "qrels.txt": "", **WITHOUT_VECTORS}, "corpus.jsonl", "has no lines"),
        # judgments and vectors cannot be checked against it
        *(
            ({"corpus.jsonl": None, "corpus.jsonl.gz": part}, "corpus.jsonl.gz", "whole gzip file")
            for part in PARTS["a gzip file"]
        ),
        *(({"corpus.m.f16.npy": part}, "corpus.m.f16.npy", "whole .npy file") for part in PARTS["an array"]),
    ],
)
def test_a_file_that_cannot_be_read_is_one_fault(tiny, changes, file, rule):
    [fault] = faults_after(tiny, changes)
    assert (fault.file, fault.line) == (file, 0)
    assert rule in fault.rule


class TestLines:
    @tabled
    def test_a_broken_line_is_one_fault(self, tiny, file, line, field, value, rule):
        """It is the third one."""
        content = TABLES["AROUND"][file].format(line.replace("DEEP", "[" * 100_000))
        [fault] = faults_after(tiny, {"qrels.txt": "q1 0 e1 1\n", file: content})
        assert (fault.file, fault.line, fault.field) == (file, 3, field)
        assert value in fault.value
        assert rule in fault.rule
        assert fault.remedy

    def test_bytes_that_are_not_utf8(self, tiny):
        corpus = jsonl(ENTRIES).encode().replace(b"Bye", b"B\xffe")
        [fault] = faults_after(tiny, {"corpus.jsonl": corpus, "qrels.txt": "q1 0 e1 1\n"})
        column = corpus.split(b"\n")[1].index(b"\xff") + 1
        assert (fault.file, fault.line) == ("corpus.jsonl", 2)
        assert ("0xff" in fault.value, fault.value.split()[-1]) == (True, str(column))
        assert "UTF-8" in fault.rule

    @tabled
    def test_a_field_of_the_manifest_is_wrong(self, tiny, change, field, value, rule):
        [fault] = faults_after(tiny, {"dataset.json": MANIFEST | change})
        assert (fault.file, fault.line, fault.field) == ("dataset.json", 0, field)
        assert value in fault.value
        assert rule in fault.rule

    def test_broken_json_is_placed_at_its_line(self, tiny):
        [fault] = faults_after(tiny, {"dataset.json": '{\n "name": "tiny",\n "as_of" "2026"\n}'})
        assert (fault.file, fault.line, fault.value) == ("dataset.json", 3, """' "as_of" "2026"'""")
        assert "Expecting ':' delimiter" in fault.rule


def unfit(rows, number):
    array = vectors(rows)
    array[1, 2] = number
    return array


class TestVectors:
    @pytest.mark.parametrize(
        ("file", "array", "field", "value", "rule"),
        [
            ("corpus.m.f16.npy", vectors(3).astype(np.float32), "dtype", "float32", "must be float16"),
            ("corpus.m.f16.npy", vectors(2), "rows", "2", "must be 3, the lines of corpus"),
            ("queries.m.f16.npy", vectors(3), "rows", "3", "must be 2, the lines of queries"),
            ("corpus.m.f16.npy", vectors(3).ravel(), "shape", "(12,)", "must have two dimensions"),
            ("queries.m.f16.npy", vectors(2)[:, :3], "dimension", "4", "differs from 3 in queries.m.f16.npy"),
            *(
                (file, unfit(rows, number), "row 1", "", "infinity (1 such")
                for file, rows in VECTOR_FILES.items()
                for number in (np.nan, -np.inf)
            ),
            ("corpus.m.f16.npy", vectors(3) * np.float16(0), "row 0", "", "is all zeros"),
            ("queries.m.f16.npy", vectors(2) * np.float16([[1], [0]]), "row 1", "", "is all zeros"),
        ],
    )
    def test_vectors_of_a_wrong_form_are_one_fault(self, tiny, file, array, field, value, rule, monkeypatch):
        monkeypatch.setattr("steelyard_eval.datasets.assembly._BLOCK", 1)  # row 1 is beyond the first block
        faults = faults_after(tiny, {file: array})
        # one dimension for all: it is the others' that differs from that of the queries
        places = ["corpus.l0.m.f16.npy", "corpus.m.f16.npy"] if field == "dimension" else [file]
        assert [(f.file, f.line, f.field) for f in faults] == [(place, 0, field) for place in places]
        assert value in faults[0].value
        assert rule in faults[0].rule

    def test_pickled_objects_are_refused_and_never_run(self, tiny, tmp_path):
        class Bomb:
            def __reduce__(self):
                return (tmp_path.__class__.touch, (tmp_path / "boom",))

        for content in (np.array([[Bomb()] * 4] * 3, dtype=object), pickle.dumps(Bomb())):
            faults = faults_after(tiny, {"corpus.m.f16.npy": content})
            assert [f.file for f in faults] == ["corpus.m.f16.npy"]
        assert not (tmp_path / "boom").exists()

    def test_an_imported_entry_without_a_vector_has_zeros_and_is_counted(self, tiny):
        """In other sets a row of zeros is a vector that was lost on the way."""
        array = vectors(3)
        array[1] = 0
        write(tiny, "corpus.m.f16.npy", array)
        write(tiny, "dataset.json", MANIFEST | {"source": {"kind": "table"}})
        report = check(tiny)
        assert report.faults == ()
        assert any(note.startswith("1 entry") and "vector of 'm'" in note for note in report.notices)

    def test_a_set_without_labels_is_no_fault_and_a_folder_in_their_place_is(self, tiny):
        (tiny / "qrels.txt").unlink()
        report = check(tiny)
        assert report.dataset.qrels == {}
        (told,) = report.notices
        assert told.startswith("2 queries")
        (tiny / "qrels.txt").mkdir()
        [fault] = faults_after(tiny, {})
        assert (fault.file, "cannot be read" in fault.rule) == ("qrels.txt", True)

    def test_a_file_without_permission_is_no_fault_of_the_data(self, tiny, monkeypatch):
        def refuse(path):
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr("steelyard.base.files.open_regular", refuse)
        with pytest.raises(MachineError, match=r"dataset\.json: no permission") as raised:
            check(tiny)
        assert raised.value.exit_code == 4

    def test_a_faulty_entry_can_still_be_judged(self, tiny):
        """One fault is reported, not a second one for each line that names the entry."""
        corpus = jsonl([ENTRIES[0], {"id": "e2", "title": 7}, ENTRIES[2]])
        assert [f.field for f in faults_after(tiny, {"corpus.jsonl": corpus})] == ["title"]

    def test_feedback_that_is_not_json(self, tiny):
        [fault] = faults_after(tiny, {"feedback.jsonl": '{"schema_version": 1, "query_id": "q1"}\n{\n'})
        assert (fault.file, fault.line) == ("feedback.jsonl", 2)
        assert load(tiny).feedback == tiny / "feedback.jsonl"  # only learning reads it, and sets such lines aside


# `check --accept` takes files that were changed on purpose; nothing else does


@pytest.fixture
def sealed(tiny, monkeypatch):
    monkeypatch.setenv("STEELYARD_RUNS", "on")
    write(tiny, "dataset.json", MANIFEST | sealing(tiny, "corpus.jsonl", "qrels.txt", "queries.jsonl"))
    return tiny


def accept(folder):
    found = run("check", folder, "--accept", "--json")
    return found.exit_code, json.loads(found.stdout)["changes"]


def test_a_label_and_a_text_that_were_changed(sealed):
    keep(load(sealed), Result("compare", Answer("alone"), Provenance("t", DataFacts("x"))))
    write(sealed, "qrels.txt", QRELS.replace("q1 0 e1 2", "q1 0 e1 3"))
    [fault] = check(sealed).faults
    assert fault.remedy.endswith(f"steelyard check {sealed} --accept")
    code, (accepted, since) = accept(sealed)
    assert (code, accepted, "1 changed ('q1 e1')" in since) == (0, "accepted: qrels.txt", True)
    assert load(sealed).qrels["q1"]["e1"] == 3
    write(sealed, "corpus.jsonl", jsonl(ENTRIES).replace("Hello", "Goodbye"))
    code, told = accept(sealed)
    assert (code, told[0]) == (0, "accepted: corpus.jsonl")
    assert any("corpus.l0.m.f16.npy, corpus.m.f16.npy;" in one for one in told)  # made of the text before
    write(sealed, "qrels.txt", None)
    code, told = accept(sealed)
    assert (code, "qrels.txt" in told[0], "gone" in told[0]) == (0, True, True)
    assert "qrels.txt" not in json.loads((sealed / "dataset.json").read_text())["files"]


def test_nothing_is_written_while_there_are_other_faults(sealed):
    write(sealed, "qrels.txt", "nobody 0 nothing 1\n")
    before = (sealed / "dataset.json").read_bytes()
    code, (told,) = accept(sealed)
    assert (code, "nothing" in told) == (2, True)
    assert (sealed / "dataset.json").read_bytes() == before


def refusal(folder):
    """The lines of the message that refuses a set."""
    with pytest.raises(DataError) as raised:
        load(folder)
    return str(raised.value).splitlines()


class TestMessages:
    def test_all_faults_of_a_broken_set_are_reported_together(self, tiny):
        write(tiny, "dataset.json", MANIFEST | {"as_of": "soon"})
        write(tiny, "corpus.jsonl", jsonl(ENTRIES).replace('"Hello"', "NaN"))
        write(tiny, "queries.jsonl", jsonl([QUERIES[0], QUERIES[1] | {"text": ""}]))
        write(tiny, "qrels.txt", QRELS + "q7 0 e8 9\n")
        write(tiny, "corpus.m.f16.npy", vectors(2))
        first, *lines = refusal(tiny)
        # e1 stands on the broken line, so the judgment of it names an entry that is not there.
        assert first == f"{tiny}: 8 faults"
        places = ["corpus.jsonl:1", "corpus.m.f16.npy", "dataset.json", "qrels.txt:1", *["qrels.txt:4"] * 3]
        assert [line.split(": ")[0] for line in lines] == [*places, "queries.jsonl:2"]
        assert lines == [str(fault) for fault in check(tiny).faults]

    def test_three_faults_of_each_rule_are_shown_and_the_others_counted(self, tiny):
        write(tiny, "qrels.txt", "".join(f"q1 0 none{n} 1\n" for n in range(1053)) + "q1 0 e1 9\n")
        first, *lines = refusal(tiny)
        assert first.endswith(": 1054 faults")
        places = ["qrels.txt:1:", "qrels.txt:2:", "qrels.txt:3:", "...", "qrels.txt:1054:"]
        assert [line.split(" ")[0] for line in lines] == places
        assert ("1050 more" in lines[3], lines[3].endswith("line 1053")) == (True, True)

    def test_the_folder_is_missing(self, tmp_path):
        with pytest.raises(DataError, match=r"does not exist\."):
            load(tmp_path / "gone")

    def test_hostile_text_reaches_no_terminal(self, tiny):
        escape = "\x1b]0;owned\x07\x1b[31m"
        corpus = jsonl(ENTRIES) + json.dumps({"id": escape + " x", escape: 1, "title": [escape]}) + "\n"
        about = {"files": {escape: escape}, "report_split": escape, "text_for_embedding": "{" + escape + "}"}
        qrels = QRELS + f"q1 0 {escape} 1\n"
        faults = faults_after(tiny, {"corpus.jsonl": corpus, "qrels.txt": qrels, "dataset.json": MANIFEST | about})
        assert len(faults) == 8  # two of the line's fields, the judgment, rows twice, three of dataset.json
        assert "".join([*map(str, faults), *check(tiny).notices]).replace("\n", "").isprintable()


class TestNames:
    @tabled
    def test_a_field_under_another_name_is_one_fault_and_judgments_are_none(self, tiny, names):
        renamed = [{names.get(key, key): value for key, value in e.items()} for e in ENTRIES]
        found = faults_after(tiny, {"corpus.jsonl": jsonl(renamed)})
        assert [(f.file, f.line, f.field) for f in found] == [("corpus.jsonl", 0, own) for own in names]
        assert all(repr(names[f.field]) in f.rule and repr(names[f.field]) in f.remedy for f in found)

    def test_a_misspelled_field_that_no_line_has_otherwise_is_suggested(self, tiny):
        entries = [{"titel" if k == "title" else k: v for k, v in e.items()} for e in ENTRIES]
        write(tiny, "corpus.jsonl", jsonl(entries))
        write(tiny, "corpus.m.f32.npy", vectors(3))  # no name of the format
        told = load(tiny).notices
        assert any(one.endswith("'title' by 'titel'?") for one in told)
        assert any(one.startswith("1 .npy file") for one in told)
        found = faults_after(tiny, {"queries.jsonl": jsonl([{"id": "q1", "query": "x"}, QUERIES[1]])})
        assert "you mean `text`" in found[0].remedy

    def test_a_misspelled_key_of_the_manifest_is_a_fault(self, tiny):
        about = {"name": "tiny", "as-of": "2026-11-22", "text_for_embeding": "{text}", "citation": "someone"}
        found = [(f.field, f.rule.rpartition(" ")[2]) for f in faults_after(tiny, {"dataset.json": about})]
        assert found == [("'as-of'", "'as_of'?"), ("'text_for_embeding'", "'text_for_embedding'?")]

    @pytest.mark.parametrize("header", ["", "query-id\tcorpus-id\tscore\n"])
    def test_judgments_of_three_columns_are_read_with_and_without_a_header(self, tiny, header):
        before = load(tiny).qrels
        write(tiny, "qrels.txt", None)
        write(tiny, "qrels.tsv", header + "q1\te1\t2\nq1\te2\t0\nq2\te2\t1\n")
        assert load(tiny).qrels == before


def notices(folder, **changes):
    for name, content in changes.items():
        write(folder, f"{name}.jsonl", jsonl(content))
    return load(folder).notices


def changed(records, changes):
    return [record | changes.get(record["id"], {}) for record in records]


class TestNotices:
    @tabled
    def test_what_may_be_meant_otherwise_is_counted(self, tiny, entries, queries, qrels, counts):
        write(tiny, "qrels.txt", qrels or QRELS)
        told = notices(tiny, corpus=changed(ENTRIES, entries), queries=changed(QUERIES, queries))
        assert [" ".join(one.split()[:2]) for one in told] == counts

    def test_unknown_fields_are_counted_and_kept(self, tiny):
        entries = [ENTRIES[0] | {"turn": 1, "mood": "x"}, ENTRIES[1] | {"turn": 2}, ENTRIES[2]]
        kept, left = notices(tiny, corpus=entries, queries=[QUERIES[0] | {"answer": "yes"}, QUERIES[1]])
        assert (kept[:9], kept.endswith("'mood', 'turn'")) == ("2 entries", True)
        assert (left[:7], left.endswith("'answer'")) == ("1 query", True)
        assert load(tiny).entries[0].extra == {"turn": 1, "mood": "x"}

    def test_fields_of_a_store_that_was_imported_are_meant_unless_they_look_misspelt(self, tiny):
        write(tiny, "dataset.json", MANIFEST | {"source": {"kind": "markdown", "path": "notes"}})
        assert notices(tiny, corpus=[ENTRIES[0] | {"front_matter": {}}, *ENTRIES[1:]]) == ()
        bare = [{key: value for key, value in entry.items() if key != "title"} for entry in ENTRIES]
        (told,) = notices(tiny, corpus=[bare[0] | {"front_matter": {}, "titel": "x"}, *bare[1:]])
        assert told.endswith("'title' by 'titel'?") and "'front_matter', 'titel';" in told

    @tabled
    def test_the_clock_is_the_latest_date(self, tiny, changes, asked, as_of, told):
        write(tiny, "dataset.json", {"name": "tiny"})
        write(tiny, "queries.jsonl", jsonl([QUERIES[0] | {"asked_at": asked}, QUERIES[1]]))
        whose = ["e1", "e2", "e3"] if None in changes.values() else ["e1"]
        write(tiny, "corpus.jsonl", jsonl(changed(ENTRIES, dict.fromkeys(whose, changes))))
        dataset = load(tiny)
        assert as_of is None or dataset.as_of == as_of
        assert told in dataset.notices[0] and len(dataset.notices) == 1


@tabled
def test_fields_are_filled_in_once_and_a_line_of_empty_fields_is_left_out(template, text):
    assert render(template, Entry("e1", title="{text}", text="Hi", tags=("a", "b"))) == text


@pytest.mark.parametrize("template", ["{importance}", "{relations}", "{0}", "{text:{title}}"])
def test_only_plain_text_fields_may_be_named(template):
    with pytest.raises(ConfigError, match="template field"):
        render(template, Entry("e1"))


@pytest.fixture
def beir(tmp_path):
    folder = tmp_path / "nano"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": f"d{n}", "title": "T", "text": "x", "metadata": {"n": n}} for n in range(3)]
    write(folder, "corpus.jsonl", jsonl(corpus))
    write(folder, "queries.jsonl", jsonl({"_id": f"q{n}", "text": f"why {n}", "metadata": {}} for n in range(4)))
    header = "query-id\tcorpus-id\tscore\n"
    write(folder, "qrels/train.tsv", header + "q0\td0\t1\n")
    write(folder, "qrels/test.tsv", header + "q1\td1\t1\nq1\td2\t2\nq2\td0\t0\n")
    return folder


class TestBeir:
    def test_it_is_the_same_kind_of_set(self, beir):
        dataset = load(beir)
        assert (dataset.name, dataset.report_split) == ("nano", "test")
        assert [e.id for e in dataset.entries] == ["d0", "d1", "d2"]
        assert dataset.entries[1].extra == {"metadata": {"n": 1}}
        assert {q.id: q.split for q in dataset.queries} == {"q0": "train", "q1": "test", "q2": "test", "q3": ""}
        assert dataset.qrels == {"q0": {"d0": 1}, "q1": {"d1": 1, "d2": 2}, "q2": {"d0": 0}}
        told = [re.split(" ha(?:ve|s) ", notice)[1] for notice in dataset.notices[1:]]
        assert [text[:13] for text in told] == ["fields the fo", "fields the fo", "no labels"]

    def test_a_query_judged_twice_belongs_to_test_and_judgments_are_required(self, beir):
        write(beir, "qrels/train.tsv", "query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td0\t1\n")
        dataset = load(beir)
        assert dataset.queries[1].split == "test"
        assert dataset.notices[0].startswith("1 queries are")
        for file in (beir / "qrels").iterdir():
            file.unlink()
        [fault] = check(beir).faults
        assert (fault.file, fault.rule.split()[-3:]) == ("qrels", ["test.tsv,", "dev.tsv,", "train.tsv"])

    def test_faults_name_the_file_and_line(self, beir):
        write(beir, "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td9\t1\nq1 d1\n")
        write(beir, "corpus.jsonl", jsonl([{"title": "no id"}, {"_id": "d0", "id": "other"}]))
        places = [("corpus.jsonl", 1, "id"), ("qrels/test.tsv", 2, "entry"), ("qrels/test.tsv", 3, "")]
        assert [(f.file, f.line, f.field) for f in check(beir).faults] == places

    @tabled
    def test_none_is_the_report_split_else_all(self, tiny, report, asked, found):
        write(tiny, "dataset.json", MANIFEST | ({"report_split": report} if report else {}))
        assert " ".join(q.id for q in load(tiny).split(*filter(None, [asked]))) == found
        with pytest.raises(DataError, match=r"split 'x'; valid:"):
            load(tiny).split("x")

    @tabled
    def test_queries_that_weights_are_tuned_on_and_those_held_out(self, tiny, splits, tune, holdout):
        names = [name.strip("-") for name in splits.split()]
        write(tiny, "queries.jsonl", jsonl({"id": f"q{n}", "text": "t", "split": s} for n, s in enumerate(names)))
        write(tiny, "qrels.txt", "")
        (tiny / "queries.m.f16.npy").unlink()
        assert tuple([q.id for q in own] for own in tuning_queries(load(tiny))) == (tune, holdout)


class TestSharedSets:
    def test_counts_are_those_of_dataset_json(self, data_root, shared_set):
        counts = json.loads((data_root / shared_set / "dataset.json").read_text())["counts"]
        dataset = load(data_root / shared_set)
        grades = [grade for judged in dataset.qrels.values() for grade in judged.values()]
        relations, known = [r for e in dataset.entries for r in e.relations], {e.id for e in dataset.entries}
        inside = sum(r.target in known for r in relations)
        usual = {"relations": 0, "relations_to_documents_of_this_set": 0}
        held = {"documents": len(dataset.entries), "queries": len(dataset.queries), "judgments": len(grades)}
        assert usual | counts == usual | counts | held | {
            "grades": {str(g): grades.count(g) for g in set(grades)},
            "documents_with_date": sum(e.created_at is not None for e in dataset.entries),
            "relations": len(relations),
            "relations_to_documents_of_this_set": inside,
        }
        notice = f"{len(relations) - inside} relations point to entries that are not in the set"
        assert (notice in dataset.notices) == (len(relations) > inside)

    def test_scifact_is_reported_on_test_and_tuned_on_train(self, data_root):
        """BEIR's counts: 300 test queries, 809 train queries."""
        dataset = load(data_root / "scifact")
        tune, holdout = tuning_queries(dataset)
        assert (len(dataset.split()), len(tune), len(holdout)) == (300, 809, 300)


# Labels as strangers write them, in files and in memory; labels that were given twice; marks before texts

BOM = "\ufeff"
JAMS = {"a": "plum jam", "b": "fig jam", "#c": "pear jam"}
ASKED = {"x": "plum", "y": "fig", "#z": "pear"}


@tabled
def test_every_line_of_labels_is_read_or_refused_by_its_number(qrels, right, tmp_path):
    corpus, queries = ([{"id": id_, "text": text} for id_, text in own.items()] for own in (JAMS, ASKED))
    report = check(write_set(tmp_path, corpus, queries, qrels, text_for_embedding="{text}"))
    faults = [[fault.line, fault.field] for fault in report.faults]
    assert (faults or {query: dict(own) for query, own in report.dataset.qrels.items()}) == right


@pytest.mark.parametrize(
    ("qrels", "right"),
    [
        ({"x": {"a": np.int64(2)}}, 2),
        ({"x": {"a": np.float32(1)}}, 1),
        ({"x": {"a": True}}, 1),
        ({"x": {"a": np.bool_(False)}}, 0),
        ({"x": ["a"]}, 1),
        ({"x": {"a"}}, 1),
        ({"x": np.array(["a"])}, 1),
        ([("x", "a", 3.0)], 3),
        (pd.DataFrame({"qid": ["x"], "docno": ["a"], "label": [True]}), 1),
        (pd.DataFrame({"query": ["x"], "entry": ["a"], "grade": np.array([2], dtype=np.uint8)}), 2),
    ],
)
def test_labels_in_memory_are_read(qrels, right):
    found = load_dict({"corpus": JAMS, "queries": ASKED, "qrels": qrels})
    assert {query: dict(own) for query, own in found.qrels.items()} == {"x": {"a": right}}


TEXTS = [{"x": "ab"}, {"x": b"ab"}, {"x": np.str_("ab")}, "xa1", ["xa1"], [("x", "a")], {"#q": ["a"]}, [[]]]
GRADES = [{"x": {"a": grade}} for grade in (1.5, np.float32(0.5), None)]
NAN = pd.DataFrame({"query": ["x"], "entry": ["a"], "grade": [float("nan")]})


@pytest.mark.parametrize("qrels", [*TEXTS, *GRADES, NAN], ids=str)
def test_labels_that_would_be_read_as_others_are_refused(qrels):
    with pytest.raises((ConfigError, DataError)):
        load_dict({"corpus": JAMS, "queries": ASKED, "qrels": qrels})


def test_second_labels_stand_beside_the_first_and_agreement_is_that_of_scikit_learn(tmp_path):
    shutil.copytree(STARTER, tmp_path, ignore=shutil.ignore_patterns(".steelyard"), dirs_exist_ok=True)
    dataset = load(tmp_path)
    assert judged_twice(dataset).key == "judged_once"
    pairs = [(query, entry) for query, row in sorted(dataset.qrels.items()) for entry in row][:40]
    graded = {pair: (dataset.qrels[pair[0]][pair[1]] + at % 3) % 4 for at, pair in enumerate(pairs)}
    lines = [f"{query} 0 {entry} {grade}\n" for (query, entry), grade in graded.items()]
    (tmp_path / "second-labels.txt").write_text("".join(lines))
    found = load(tmp_path)
    assert (found.sha256, found.qrels) == (dataset.sha256, dataset.qrels)  # they decide nothing
    said = judged_twice(found)
    first = np.array([dataset.qrels[query][entry] for query, entry in graded])
    second = np.array(list(graded.values()))
    chance = first.var() + second.var() + (first.mean() - second.mean()) ** 2  # Cohen, 1968
    kappa = 1 - ((first - second) ** 2).mean() / chance
    assert (said.key, said.facts["count"], said.facts["low"]) == ("judged_twice", 40, kappa < 0.6)
    assert (said.facts["equal"], said.facts["kappa"]) == pytest.approx((14 / 40, kappa))
    (tmp_path / "second-labels.txt").write_text("nobody 0 nothing 1\n")  # an import may have removed either
    assert judged_twice(load(tmp_path)).key == "judged_once"
    (tmp_path / "second-labels.txt").write_text("nobody 0 nothing 9\n")
    with pytest.raises(DataError, match="second-labels"):
        load(tmp_path)


def test_a_query_stays_drawn_where_a_labelled_entry_is_gone_and_not_where_a_label_is(tmp_path):
    batch = {"sampled": "random", "labels": {"q1": ["m1", "gone"], "q2": ["m1", "m2"]}}
    set_ = write_set(tmp_path, ["a", "b"], ["x", "y"], "q1 0 m1 1\nq2 0 m1 1\n", provenance=[batch])
    assert load(set_).random_queries == {"q1"}


def marked(path, text):
    """A file with a mark before the text; compressed under a name in .gz."""
    data = (BOM + text).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("text", ["", "one\n\ntwo", f"one{BOM}\n"])
def test_text_is_read_behind_its_mark_and_nothing_else_is_taken(name, text, tmp_path):
    path = marked(tmp_path / name, text)
    rows = [line for line in text.split("\n") if line]
    assert read_text(path) == text and [raw.decode() for _, raw in lines(path, 100)] == rows
    with open_unpacked(path) as stream:
        assert stream.read().decode() == text


def test_what_is_read_as_text_anywhere_may_have_a_mark(tmp_path):
    config = find_system("bm25").config(10)
    weights = marked(tmp_path / "weights", json.dumps(config.to_json()))
    assert SearchConfig.load(weights) == config and not lists_alone(str(weights))
    query = {"query_id": "s1", "user_query": "plum", "query_response_hit_ids": ["a", "b"]}
    event = {"action_name": "click", "query_id": "s1", "event_attributes": {"object": {"object_id": "b"}}}
    log = marked(tmp_path / "ubi.jsonl", f"{json.dumps(query)}\n{json.dumps(event)}\n")
    [session] = read_ubi([log], None, "", Counter())
    assert session.events[1].names == ("b",)
    whole = marked(tmp_path / "spans.json", json.dumps([query, event]))
    assert [list(records_of(path, {})) for path in (log, whole)] == [[query, event]] * 2


def test_a_folder_of_entries_alone_has_a_file_of_no_queries(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"id": "a"}\n')
    found = read_queries(FolderReader(tmp_path))
    assert (found.items, found.rows, found.with_unknown) == ((), 0, 0)
