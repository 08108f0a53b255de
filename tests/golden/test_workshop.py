"""qrels/workshop is what its README says: counts, labels, copies, frames, overlap of words."""

import importlib.util
import json
import shutil
from hashlib import sha256
from pathlib import Path
from types import ModuleType

import pytest

from steelyard.base.extensions import EXTRAS
from steelyard.extensions.models import WordLlamaEmbedder
from steelyard_eval.compare import compare
from steelyard_eval.datasets import load

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "qrels" / "workshop"


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("workshop", ROOT / "tests" / "benchmarks" / "workshop.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


workshop = _script()


def test_the_counts_are_those_that_were_asked_for() -> None:
    entries, queries = workshop.rows("corpus.jsonl"), workshop.rows("queries.jsonl")
    memories = [entry for entry in entries if entry.get("text")]
    folders = [entry for entry in entries if not entry.get("text")]
    unanswerable = [query["id"] for query in queries if query.get("answerable") is False]
    judged = [line.split() for line in (FOLDER / "qrels.txt").read_text().splitlines()]

    assert (len(memories), len(folders), len(queries), len(unanswerable)) == (430, 82, 200, 48)
    assert all(folder["l0"] and folder["l1"] for folder in folders)
    assert {entry["uri"].rpartition("/")[0] for entry in memories} == {folder["uri"] for folder in folders}
    assert sum(len(entry.get("relations", ())) for entry in entries) >= 200
    assert {query for query, *_ in judged} == {query["id"] for query in queries}
    answered = {query for query, _, _, grade in judged if grade != "0"}
    assert answered == {query["id"] for query in queries} - set(unanswerable)
    for field, least in (("vault", 3), ("tenant", 2), ("domain", 4), ("type", 6), ("memory_type", 9)):
        assert len({entry[field] for entry in memories}) >= least


def test_entries_are_written_one_by_one() -> None:
    memories = [entry for entry in workshop.rows("corpus.jsonl") if entry.get("text")]
    copies = workshop.near_duplicates(memories)
    frame, count = workshop.frames(memories).most_common(1)[0]

    assert len(copies) < 0.02 * len(memories)
    assert count <= 0.01 * len(memories), frame
    lengths = [sum(len(entry.get(name, "").split()) for name in workshop.FIELDS[1:6]) for entry in memories]
    assert min(lengths) >= 20
    assert max(lengths) <= 400


def test_a_generated_collection_would_be_seen() -> None:
    made = [
        {"id": str(n), "text": f"We moved the service number {n} to the cluster of team {n} for the reason {n}."}
        for n in range(50)
    ]

    assert workshop.frames(made).most_common(1)[0][1] == 50
    assert len(workshop.near_duplicates([{"id": "a", "text": "one two three four five six"}] * 2)) == 1


def test_queries_share_as_many_words_with_their_entries_as_real_ones() -> None:
    assert 0.25 <= workshop.overlap(load(FOLDER)).mean() <= 0.45


def test_everything_that_systems_show_was_judged(tmp_path: Path) -> None:
    """Also for the queries that have no answer: comparisons leave them out, so here they get one."""
    pytest.importorskip("apsw")
    copy = shutil.copytree(FOLDER, tmp_path / "copy")
    queries = [
        {key: query[key] for key in query if key != "answerable"} for query in workshop.rows("queries.jsonl")
    ]
    (copy / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries), "utf-8")
    judged = [line.split() for line in (FOLDER / "qrels.txt").read_text().splitlines()]
    (copy / "qrels.txt").write_text("".join(f"{query} 0 {entry} 1\n" for query, _, entry, _ in judged))
    about = json.loads((copy / "dataset.json").read_text("utf-8"))
    (copy / "dataset.json").write_text(json.dumps({key: about[key] for key in about if key != "files"}), "utf-8")
    metrics = ("nDCG@10",)
    shown = [*workshop.SYSTEMS, workshop.DEFAULT]
    compare(load(copy), shown, timed=False, runs=tmp_path / "runs", metrics=metrics)
    known = {(query, entry) for query, _, entry, _ in judged}
    runs = {run.name: run.read_text().splitlines() for run in (tmp_path / "runs").glob("*.run")}

    assert len(runs) == len(workshop.SYSTEMS) + 1
    assert len({line.split()[0] for line in runs["vector.documented.run"]}) == 200
    for name, lines in runs.items():
        ranked = map(str.split, lines)  # Soleri's guard shows more than ten
        shown = {(query, entry) for query, _, entry, rank, *_ in ranked if int(rank) <= 10}
        assert shown, name
        assert not shown - known, name


def test_labels_that_were_judged_twice_agree() -> None:
    twice = workshop.second_pass()
    judged = [line.split() for line in (FOLDER / "qrels.txt").read_text().splitlines()]
    labels = {(query, entry): int(grade) for query, _, entry, grade in judged}

    assert len(twice) >= 0.25 * 8432
    assert len(labels) == 8432
    assert round(workshop.kappa([(a, b) for _, _, a, b, _ in twice]), 2) == 0.93
    assert all(labels[query, entry] == final for query, entry, _, _, final in twice)


def test_relations_lead_to_entries_and_replaced_ones_say_so() -> None:
    entries = {entry["id"]: entry for entry in workshop.rows("corpus.jsonl")}
    for entry in entries.values():
        for relation in entry.get("relations", ()):
            other = entries[relation["target"]]
            if relation["type"] == "supersedes":
                assert other["superseded_by"] == entry["id"]
                assert other["created_at"] < entry["created_at"]


def test_the_hashes_in_dataset_json_hold() -> None:
    named = json.loads((FOLDER / "dataset.json").read_text())["files"]
    assert set(named) >= {"corpus.jsonl", "queries.jsonl", "qrels.txt"}
    assert {name: sha256((FOLDER / name).read_bytes()).hexdigest() for name in named} == named


def test_the_second_vectors_are_those_of_wordllama() -> None:
    missing = [module for module in EXTRAS["wordllama"] if importlib.util.find_spec(module) is None]
    if missing:
        pytest.skip(f"the extra wordllama is not installed: {', '.join(missing)}")
    for side, found in workshop.vectors(WordLlamaEmbedder()).items():
        recorded = (FOLDER / f"{side}.wordllama.f16.npy").read_bytes()
        assert recorded.endswith(found.tobytes()), side  # after the header
