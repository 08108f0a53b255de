"""The first sentence where there is no data set yet: find the store, import it, say what is known."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.base.errors import DataError, visible
from steelyard_eval.choose.recommend import Recommendation, recommend
from steelyard_eval.common.extensions import extension
from steelyard_eval.compare.contenders import Given
from steelyard_eval.datasets import UNNAMED, load
from steelyard_eval.datasets.places import data_sets, has_corpus
from steelyard_eval.views.terminal import answered

if TYPE_CHECKING:
    from steelyard_eval.extensions.importers import Import, Importer

OUT = "mine"
"""The folder of the data set."""
WEIGHTS = Path("search-weights.json")
LEFT_OUT = frozenset({".git", ".github", ".venv", "venv", "node_modules", "__pycache__", ".cache", ".tox", OUT})
GENERIC = frozenset({"markdown", "table", "locomo", "longmemeval", "beam", "beir", "trec", "ir_datasets"})
"""Kinds that fit far more than a store of memories; Markdown is taken where the folder is named like one."""
NOTES = frozenset(
    ["brain", "diary", "journal", "knowledge", "memories", "memory", "notes", "vault", "zettelkasten"]
)
DEPTH = 2
MOST = 2_000
"""Folders that are looked at."""


@dataclass(frozen=True)
class Begun:
    """What was imported, what is taken to rank it today, and what is known without labels."""

    imported: Import
    current: str
    said: str
    recommendation: Recommendation
    queries: int
    files: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        answer = self.recommendation
        return {
            "imported": self.imported.to_json(),
            "current": self.current,
            "why_current": self.said,
            "verdict": answer.verdict,
            "sentence": answer.sentence,
            "queries": self.queries,
            "files": list(self.files),
            "next": self.next,
        }

    @property
    def next(self) -> str:
        """The command that opens judging."""
        return f"steelyard judge {self.imported.folder}"

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {name}" for name, count in self.imported.counts.items()) or "nothing"
        first = (
            f"{self.imported.folder}: {counts}, from {visible(str(self.imported.source))} ({self.imported.kind})"
        )
        written = "".join(f"\n{line}" for line in self.files)
        today = f"What ranks them today is taken to be {self.current} ({self.said}); --current names another."
        return "\n".join(filter(None, [first, today, "\n" + answered(self.recommendation.result.answer), written]))


def is_store(place: str | None) -> bool:
    """Whether `init` begins with a store: where no data set is named, or in or below the working directory."""
    if place is not None:
        folder = Path(place)
        return not has_corpus(folder) and (folder.exists() or place in extension("importers").importers())
    return not data_sets(Path())


def begin(
    source: str | Path | None = None,
    current: Given | None = None,
    out: str | Path = OUT,
    *,
    embedder: str = "auto",
) -> Begun:
    """Import a store into the folder of a data set, and say what can be said without labels.

    What ships or is worth trying is written as `steelyard recommend` writes it.

    Parameters
    ----------
    source : a store, or the name of a kind; by default the only one in or below the working directory.
    current : any contender
        What ranks today: by default search-weights.json, else what ranks as the store's program does, else bm25.
    out : the folder that is written.
    embedder : see `Workspace.open`.

    Raises DataError where no store is found, or several; and what `import_store` raises.
    """
    store = find_store(Path()) if source is None else source
    imported = extension("importers").import_store(store, out)
    dataset = load(imported.folder)
    used, said = (current, "as you say") if current is not None else _current(dataset.system)
    answer = recommend(dataset, used, embedder=embedder, timed=False)
    files: list[str] = []
    if answer.verdict != "keep":
        answer, files = answer.saved(WEIGHTS, dataset)
    return Begun(imported, str(used), said, answer, len(dataset.queries), tuple(files))


def _current(system: str) -> tuple[str, str]:
    """What ranks today, and how that is known."""
    if WEIGHTS.is_file():
        return str(WEIGHTS), "it is there"
    if system:
        return system, "it ranks as the store's program does"
    return UNNAMED, "nothing names it"


def find_store(root: Path) -> Path:
    """The only store in or below a folder; DataError where there is none, or there are several."""
    known = extension("importers").importers()
    kinds = [kind for kind in known.values() if kind.name not in GENERIC]
    places = list(_places(root))
    stores = [place for place in places if any(_matches(kind, place) for kind in kinds)]
    stores = [place for place in stores if not any(other in stores for other in place.parents)]
    if not stores:
        notes = known["markdown"]
        stores = [place for place in places if place.name.lower().lstrip(".") in NOTES and _matches(notes, place)]
    if len(stores) == 1:
        return stores[0]
    there = (
        f"there are {len(stores)}: {', '.join(visible(str(store)) for store in stores[:10])}"
        if stores
        else "none is found"
    )
    raise DataError(
        f"name the store, or the folder of a data set, such as steelyard init NOTES; {there} "
        "(steelyard import --list shows what can be read)"
    )


def _places(root: Path) -> Iterator[Path]:
    """The folder, its folders and files to a depth of two, in the order of their names; no link is followed."""
    level, seen = [root], 0
    for depth in range(DEPTH + 1):
        below: list[Path] = []
        for folder in level:
            seen += 1
            if seen > MOST:
                return
            yield folder
            if depth < DEPTH:
                below += _inside(folder)
        level = [path for path in below if path.is_dir()]
        yield from (path for path in below if not path.is_dir())


def _inside(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if not entry.is_symlink()]
    except OSError:
        return []
    return [folder / name for name in sorted(names)[:MOST] if name not in LEFT_OUT]


def _matches(kind: Importer, place: Path) -> bool:
    try:
        return bool(kind.matches(extension("importers").ForeignStore(place.absolute())))
    except (DataError, OSError):
        return False
