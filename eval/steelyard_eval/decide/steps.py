"""What to do with a verdict: which file to search with, and what would settle the rest."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from steelyard.base.errors import ConfigError
from steelyard.base.escape import visible
from steelyard.base.extras import installing, missing_modules
from steelyard.config.search_config import SearchConfig
from steelyard.embedders.kinds import KINDS, LIGHT, indexing_kind, kind_of
from steelyard_eval.common.answer import Step
from steelyard_eval.common.documents.parts import StepRecord
from steelyard_eval.common.markup import counted
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.corpus_and_queries import QUERIES
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.folder import qrels_file
from steelyard_eval.datasets.manifest import holds_hash
from steelyard_eval.recording.rankings import spelled
from steelyard_eval.recording.rankings.spelling import word

WEIGHTS = Path("search-weights.json")
"""Where weights go, unless another file is named."""
NEW = Path("search-weights.new.json")
"""Where other weights go, so that those which are named stay."""
SHORT = 60
"""Characters of a query that is printed in a command."""


def beside(path: Path) -> Path:
    """search-weights.try.json for search-weights.json."""
    return path.with_name(f"{path.name.removesuffix('.json')}.try.json")


def today(path: Path) -> Path:
    """search-weights.current.json for search-weights.json."""
    return path.with_name(f"{path.name.removesuffix('.json')}.current.json")


def vault_of(dataset: Dataset) -> str:
    """The vault that the printed commands make of a data set: mine.db of the folder mine."""
    return "VAULT" if dataset.in_memory else word(Path(f"{dataset.path.resolve().name}.db"))


def asking(dataset: Dataset) -> str:
    """A query to try, the first of the data set that is short and can be pasted; QUERY without any."""
    texts = (query.text for query in dataset.queries if len(query.text) <= SHORT and query.text.isprintable())
    return next((text for text in texts if not text.startswith("-")), "QUERY")


def chosen_for(dataset: Dataset) -> str | None:
    """The weights file here that was chosen on a data set, instead of what is used today; None without one."""
    for file in (WEIGHTS, beside(WEIGHTS)):
        with suppress(ConfigError):
            facts = SearchConfig.load(file).provenance
            if facts.get("dataset") == dataset.name and facts.get("verdict") != "keep":
                return str(file)
    return None


def using(path: Path, dataset: Dataset) -> str:
    """The command that searches with a weights file."""
    return shlex.join(["steelyard", "search", vault_of(dataset), asking(dataset), "--weights", str(path)])


def taking_turns(path: Path, dataset: Dataset) -> str:
    """The command that serves a vault by both files of a try, in turns, and logs what is done."""
    both = ["--weights", str(today(path)), "--explore", str(beside(path)), "--share", "1"]
    return shlex.join(["steelyard", "serve", vault_of(dataset), *both, "--log", "feedback.jsonl"])


def indexing(path: Path, dataset: Dataset, model: str) -> tuple[Step, ...]:
    """The step that makes the vault for a weights file; none for a data set in memory.

    `model` is of the vectors; where no embedder makes them, `index` cannot take it from the file.
    """
    weights = path if not model or indexing_kind(model) else None
    command = spelled("index", dataset, vault_of(dataset), options={"--weights": weights})
    return () if command is None else (Step("index it once", command),)


def installed_first(steps: Sequence[StepRecord], again: str | None = None) -> list[StepRecord]:
    """The steps, below the one that installs the model that they embed with, where it is not installed here.

    Which model that is stands in the weights file that is indexed for, which is there by now. `again` is the
    command that made the answer; of a model that brings PyTorch it is also said how to do without.
    """
    words = [shlex.split(step["command"]) for step in steps]
    files = [told[-1] for told in words if told[1:2] == ["index"] and "--weights" in told]
    models = {kind_of(model) for file in files for model in SearchConfig.load(file).models}
    absent: list[StepRecord] = []
    for kind, extra in KINDS.items():
        if kind in models and missing_modules(extra):
            large = ", which brings PyTorch and is large" if kind in LIGHT else ""
            absent += [StepRecord(what=f"install the model first{large}", command=installing(extra))]
            if again and (other := LIGHT.get(kind)):
                install = f"{installing(KINDS[other])} && " if missing_modules(KINDS[other]) else ""
                light = f"{install}{again} --embedder {other}"
                absent += [StepRecord(what="or choose weights for the same model without PyTorch", command=light)]
    return [*absent, *steps]


def exporting(path: Path, target: str) -> str:
    """The command that writes a weights file for another system."""
    return shlex.join(["steelyard", "export", str(path), "--to", target])


def to_do(verdict: str, last: Step, dataset: Dataset, model: str) -> tuple[Step, ...]:
    """What to do under a verdict: which file to search with and, `last`, what would settle the rest.

    `model` is of the vectors that the weights were chosen with.
    """
    if verdict == "ship":
        return (*indexing(WEIGHTS, dataset, model), Step("search with it", using(WEIGHTS, dataset)))
    if verdict == "try":
        return (*indexing(beside(WEIGHTS), dataset, model), Step("try it", using(beside(WEIGHTS), dataset)), last)
    return (last,)


def deciding(dataset: Dataset, job: str = "recommend") -> Step:
    """Decide by labels that are new; by `learn` they decide together with a log."""
    file = next((str(path) for path in (WEIGHTS, beside(WEIGHTS)) if path.is_file()), "")
    replaces = f" (if that replaces {file}, it prints how to undo it)" if file else ""
    return Step(f"decide by these labels{replaces}", spelled(job, dataset, options={}) or "")


def labelled_as(copy: Path, dataset: Dataset) -> str:
    """The commands that give a data set the labels of a kept copy again."""
    file = dataset.path / qrels_file(FolderReader(dataset.path))
    copied = shlex.join(["cp", word(copy), word(file)])
    accepted = spelled("check", dataset, options={"--accept": True})
    return f"{copied} && {accepted}" if holds_hash(dataset.path, file.name) else copied


def judging(dataset: Dataset, what: str, *contenders: str, option: str = "") -> Step:
    """Give the labels that tell most, of the usual contenders or of these; `option` has no value."""
    return Step(what, spelled("judge", dataset, *contenders, options={option: True} if option else {}) or "")


def labelling(dataset: Dataset, wanted: int | None, purpose: str) -> Step:
    """Label so many more queries, but never more than there are; None: how many is not known."""
    left = dataset.unlabelled
    if not left:
        more = f"about {rough(wanted)} new ones" if wanted else "new ones"
        file = QUERIES if dataset.in_memory else word(dataset.path / QUERIES)
        told = f"every query has labels; to tell more, write {more} into {file}{lacking(dataset)}, then label them"
        step = drawing(dataset, told)
        accept = spelled("check", dataset, options={"--accept": True}) if sealed(dataset) else None
        return Step(told, f"{accept} && {step.command}") if accept else step
    if wanted is None:
        told = "label more of your queries"
    elif rough(wanted) > left:
        only = f"label the {counted(left, 'query', 'queries')} without labels"
        told = f"{only}, and new ones: it takes about {rough(wanted)}{purpose}"
    else:
        told = f"label about {counted(rough(wanted), 'more query', 'more queries')}{purpose}"
    return drawing(dataset, told)


def sealed(dataset: Dataset) -> bool:
    """Whether its queries.jsonl cannot grow by itself."""
    return dataset.in_memory or bool(dataset.query_vectors) or holds_hash(dataset.path, QUERIES)


def lacking(dataset: Dataset) -> str:
    """What to do with the recorded vectors of queries where there are new ones; empty without any."""
    if dataset.in_memory or not (models := sorted(dataset.query_vectors)):
        return ""
    files = ", ".join(f"queries.{visible(model)}.f16.npy" for model in models)
    kinds = sorted({*map(indexing_kind, models)} - {""})
    named = " or ".join(f"--embedder {kind}{needing(kind)}" for kind in kinds) or "an --embedder"
    told = f"has none of new queries: from then on name {named}, or choose weights anew by LSA"
    return f", move {files} out of the folder (it {told})"


def needing(kind: str) -> str:
    """What an embedder needs that is not installed here; empty where it can be used."""
    extra = KINDS.get(kind)
    if not extra or not missing_modules(extra):
        return ""
    return f", which needs {installing(extra)}{' and brings PyTorch' if kind in LIGHT else ''}"


def drawing(dataset: Dataset, what: str) -> Step:
    """Label queries that are drawn at random, as `judge` does by itself but for duels."""
    return judging(dataset, what, option="--random" if dataset.by_pairs else "")


def rough(more: int) -> int:
    """A number of queries that are still needed, in two digits.

    >>> rough(37), rough(183)
    (40, 180)
    """
    step = 10 ** max(len(str(more)) - 2, 1 if more >= 20 else 0)
    return max(step, round(more / step) * step)
