"""What a file may name as a contender: the one rule for whatever somebody else may have written.

Whatever asks (an endpoint) or runs (a function, a command) comes from the command line or from Python alone. A
data set or a baseline names systems, expressions, and files in its own folder; links count by where they lead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from steelyard.base.errors import PATH_WIDTH, ConfigError, shown
from steelyard.base.inputs import inside
from steelyard.embedders.kinds import KINDS as MODELS
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system

KINDS: Mapping[str, Callable[[str], object]] = {"system": find_system, "strategy": parse_strategy}
"""How a kind of contender that is no file is checked."""
FILES = {".json": "weights", ".run": "run"}
"""The kinds of contenders that are files, by the endings of their names."""
EMBEDDERS = ("auto", "recorded", "lsa", "none", *MODELS)
"""The embedders of data sets; `Workspace.open` says what they are."""
RULE = "what a file names is never asked, run, or opened outside its folder"


@dataclass(frozen=True)
class Naming:
    """A file that names contenders: what it is called in messages, and the folder whose files it may name.

    `instead` says how another file is named where one is gone.
    """

    file: str
    folder: Path
    instead: str = "correct its name"

    @classmethod
    def of_baseline(cls, path: Path) -> Naming:
        """A baseline may name files of the working directory when it is in there, else of its own folder."""
        here = Path()
        within = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(here))
        return cls(f"the baseline {shown(str(path), PATH_WIDTH)}", here if within else path.parent)

    def contender(self, text: str) -> str:
        """A contender of any kind, as a command would name it; ConfigError for what no file may name."""
        if (kind := FILES.get(PurePath(text).suffix)) is not None:
            return self.of_kind(kind, text)
        try:
            find_system(text)
        except ConfigError:
            try:
                parse_strategy(text)
            except ConfigError:
                raise self._refused(text, "is no documented system and no strategy") from None
        return text

    def of_kind(self, kind: str, text: str) -> str:
        """A contender of one kind, as a command would name it; ConfigError for what no file may name."""
        if kind in KINDS:
            KINDS[kind](text)
            return text
        if kind not in FILES.values():
            raise self._refused(text, f"is of the kind {shown(kind)}")
        place = shown(str(self.folder), PATH_WIDTH)
        try:
            exists = inside(self.folder, text).is_file()
        except (ValueError, OSError):
            raise self._refused(text, f"is no file in {place}") from None
        if not exists:
            gone = f"{self.file} names {shown(text)}, which is missing: there is no file in {place} of that name"
            raise ConfigError(f"{gone}; put it back, or {self.instead}")
        return os.path.join(self.folder, text)  # noqa: PTH118 -- it keeps the ./ before what could be a label

    def holds(self, text: str) -> bool:
        """Whether a file lies, and leads, inside the folder, so that it may be named."""
        try:
            inside(self.folder, text)
        except ValueError:
            return False
        return True

    def embedder(self, name: str) -> str:
        """An embedder that asks nobody; ConfigError for the others."""
        if name == "api":
            raise ConfigError(f"{self.file} names the embedder api; {RULE}, so write --embedder api yourself")
        return name

    def _refused(self, text: str, reason: str) -> ConfigError:
        remedy = "name it on the command line, or in Python"
        return ConfigError(f"{self.file} names {shown(text)}, which {reason}; {RULE}, so {remedy}")
