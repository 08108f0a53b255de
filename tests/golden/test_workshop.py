"""qrels/workshop is what its README says: counts, labels, copies, frames, overlap of words."""

import importlib.util
import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
import workshop

from steelyard.base.extensions import EXTRAS
from steelyard.extensions.models import WordLlamaEmbedder
from steelyard_eval.compare import compare
from steelyard_eval.datasets import load

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "qrels" / "workshop"


def test_the_figures_are_those_of_the_readme() -> None:
    expected = json.loads(Path(__file__).with_name("workshop.json").read_text("utf-8"))
    told = workshop.statistics()
    assert {name: told[name] for name in expected} == expected
    assert (told["words"]["p0"], told["words"]["p50"], told["words"]["p100"]) == (22, 54, 285)
    assert told["most frequent frame"][1] <= 0.01


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.nightly)])
def test_everything_that_systems_show_was_judged(step: int, tmp_path: Path) -> None:
    """Also for the queries that have no answer: comparisons leave them out, so here they get one."""
    pytest.importorskip("apsw")
    copy = shutil.copytree(FOLDER, tmp_path / "copy")
    answered = [query | {"answerable": True} for query in workshop.rows("queries.jsonl")]
    (copy / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in answered), "utf-8")
    judged = [line.split() for line in (FOLDER / "qrels.txt").read_text().splitlines()]
    asked = {query["id"] for query in answered[::step]}
    labels = "".join(f"{query} 0 {entry} 1\n" for query, _, entry, _ in judged if query in asked)
    (copy / "qrels.txt").write_text(labels)
    about = json.loads((copy / "dataset.json").read_text("utf-8"))
    (copy / "dataset.json").write_text(json.dumps({key: about[key] for key in about if key != "files"}), "utf-8")
    systems = [*workshop.SYSTEMS, workshop.DEFAULT]
    compare(load(copy), systems, timed=False, runs=tmp_path / "runs", metrics=("nDCG@10",))
    known = {(query, entry) for query, _, entry, _ in judged}
    runs = {run.name: run.read_text().splitlines() for run in (tmp_path / "runs").glob("*.run")}

    assert len(runs) == len(workshop.SYSTEMS) + 1
    assert len({line.split()[0] for line in runs["vector.documented.run"]}) == 200 // step
    for name, lines in runs.items():
        ranked = map(str.split, lines)  # Soleri's guard shows more than ten
        shown = {(query, entry) for query, _, entry, rank, *_ in ranked if int(rank) <= 10}
        assert shown, name
        assert not shown - known, name


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
