"""Running the retrievers once and keeping what they said: recordings, in memory and on disk.

On disk a recording is a folder: `manifest.json` and one `.npy` a column, opened memory-mapped and
without pickle, so it may be larger than memory.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.config import SearchConfig
from steelyard.entry import Query
from steelyard.errors import PATH_WIDTH, DataError, MachineError, shown
from steelyard.files import canonical
from steelyard.fusion import ByIntent, Expr, Tiered
from steelyard.systems import System, find_system, find_systems
from steelyard.table import FETCHED, FINDERS, RETRIEVERS, Facts, Labels, SignalTable, TagSets
from steelyard_eval.datasets import Dataset
from steelyard_eval.progress import bar
from steelyard_eval.workspace import Workspace

SCHEMA_VERSION = 1
Arrays = dict[str, NDArray[Any]]


def recording_key(system: System) -> tuple[object, ...]:
    """Systems with equal keys retrieve in the same way and can share a recording."""
    return (system.index, system.match, system.recipe, tuple(sorted(system.filters.items())))


def record(workspace: Workspace, queries: Sequence[Query], configs: Iterable[SearchConfig]) -> SignalTable:
    """One table for configurations of one recording key: all their signals, to their greatest depth."""
    chosen = list(configs)
    system = find_system(chosen[0].name)
    every = {name: settings for config in chosen for name, settings in config.retrievers.items()}
    signals = set(workspace.usable(needed(chosen)))
    workspace.index_for([system], signals)
    depth = max((d for c in chosen for d in c.depths.values() if d is not None), default=1)
    label = f"recording {', '.join(sorted({config.system for config in chosen}))}"
    searcher = workspace.searcher(replace(chosen[0], retrievers=every))
    return searcher.record(queries, signals, depth, workspace.dataset.sha256, bar(label))


def record_systems(
    dataset: Dataset, systems: list[str], out: Path, split: str | None, limit: int, embedder: str
) -> dict[str, int]:
    """Record each system to OUT/<system>.<profile>; returns the rows by folder."""
    workspace = Workspace.open(dataset, embedder)
    written = {}
    for system in find_systems(systems):
        table = record(workspace, dataset.split(split), [system.config(limit, workspace.model)])
        folder = out / f"{system.name}.{system.profile}"
        save(table, folder)
        written[str(folder)] = len(table)
    return written


def needed(configs: Iterable[SearchConfig]) -> list[str]:
    """Signals that live search could fetch for these strategies.

    A strategy or a tier of scorers alone ranks whatever the system's retrievers find, so it needs them all.
    """
    names: set[str] = set()
    for config in configs:
        names |= config.effective.signals() & FETCHED
        if _ranks_candidates(config.effective):
            names |= FINDERS & config.retrievers.keys()
    return sorted(names)


def _ranks_candidates(expr: Expr) -> bool:
    """Whether the expression, or a tier or case in it, names no retriever of its own."""
    if not expr.signals() & RETRIEVERS:
        return True
    routed = isinstance(expr, Tiered | ByIntent)
    return any(_ranks_candidates(c) for c in expr.children() if routed or c.signals() & RETRIEVERS)


def save(table: SignalTable, folder: Path) -> None:
    """Write a recording; the folder appears whole or not at all, replacing an older recording.

    Raises DataError when something else stands there, MachineError when it cannot be written.
    """
    if folder.exists() and not (folder / "manifest.json").is_file():
        raise DataError(f"{shown(str(folder), PATH_WIDTH)} exists and is not a recording; name another folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        try:
            _write(table, draft)
            if folder.exists():  # moved aside first, so that there is a whole recording at any moment but one
                folder.rename(draft / "replaced")
            draft.rename(folder)
            shutil.rmtree(folder / "replaced", ignore_errors=True)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    except OSError as error:
        raise MachineError(f"cannot write {shown(str(folder), PATH_WIDTH)}: {error.strerror or error}") from None


def load(folder: Path) -> SignalTable:
    """Open a recording, columns memory-mapped. DataError when it is broken or of another version."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        if manifest["schema_version"] != SCHEMA_VERSION:
            raise DataError(
                f"{folder}: recording of schema {shown(manifest['schema_version'])}, "
                f"this Steelyard reads {SCHEMA_VERSION}; record again"
            )
        arrays = {name: _read(folder / f"{name}.npy", shape) for name, shape in manifest["arrays"].items()}
        return _table(manifest, arrays)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{shown(str(folder), PATH_WIDTH)} is not a whole recording ({error}); record again"
        ) from None


def _write(table: SignalTable, folder: Path) -> None:
    arrays: Arrays = {"offsets": table.offsets, "entry": table.entry}
    arrays |= {f"column.{name}": values for name, values in table.columns.items()}
    arrays |= {f"position.{name}": values for name, values in table.positions.items()}
    vocabularies: dict[str, list[str]] = {}
    for side, facts in (("about", table.about), ("asked", table.asked)):
        arrays |= {f"{side}.{name}": values for name, values in facts.numbers.items()}
        arrays |= {f"{side}.tags.offsets": facts.tags.offsets, f"{side}.tags.codes": facts.tags.codes}
        for name, labels in facts.labels.items():
            vocabularies[f"{side}.{name}"] = list(labels.words)
            arrays[f"{side}.{name}"] = labels.codes
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values, allow_pickle=False)
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "fingerprint": dict(table.fingerprint),
        "queries": list(table.queries),
        "entries": list(table.entries),
        "arrays": {name: list(values.shape) for name, values in arrays.items()},
        "vocabularies": vocabularies,
    }
    (folder / "manifest.json").write_text(canonical(manifest), encoding="utf-8")


def _read(path: Path, shape: Sequence[int]) -> NDArray[Any]:
    if 0 in shape:  # an empty file cannot be mapped
        array: NDArray[Any] = np.load(path, allow_pickle=False)
    else:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if list(array.shape) != list(shape):
        raise ValueError(f"{path.name} has shape {array.shape}, the manifest says {tuple(shape)}")
    return array


def _table(manifest: Mapping[str, Any], arrays: Arrays) -> SignalTable:
    def facts(side: str) -> Facts:
        vocabularies = {k: v for k, v in manifest["vocabularies"].items() if k.startswith(f"{side}.")}
        labels = {k.removeprefix(f"{side}."): Labels(arrays[k], tuple(v)) for k, v in vocabularies.items()}
        tags = TagSets(arrays[f"{side}.tags.offsets"], arrays[f"{side}.tags.codes"])
        skip = {*vocabularies, f"{side}.tags.offsets", f"{side}.tags.codes"}
        numbers = {
            k.removeprefix(f"{side}."): v for k, v in arrays.items() if k.startswith(f"{side}.") and k not in skip
        }
        return Facts(numbers, labels, tags)

    def named(kind: str) -> Arrays:
        return {k.removeprefix(f"{kind}."): v for k, v in arrays.items() if k.startswith(f"{kind}.")}

    return SignalTable(
        queries=tuple(manifest["queries"]),
        entries=tuple(manifest["entries"]),
        offsets=arrays["offsets"],
        entry=arrays["entry"],
        columns=named("column"),
        positions=named("position"),
        about=facts("about"),
        asked=facts("asked"),
        fingerprint=manifest["fingerprint"],
    )
