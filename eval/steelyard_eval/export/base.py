"""What an exporter is: it says a configuration in another system's terms, or says what would be lost.

An exporter raises `Lost` with everything that its system cannot say; `steelyard_eval.export.export` adds the
strategy, the target and the remedy. A configuration that ranks otherwise is never exported silently: what
changes the ranking of ordinary queries is a loss, what belongs to the system's own index, or happens in
corner cases, is a note in the document.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steelyard.config import SearchConfig
from steelyard.files import canonical

Parts = tuple[dict[str, Any], list[str]]
"""The parts of a document by name, and its notes."""


class Lost(Exception):  # noqa: N818 -- it names what is lost; users see the ConfigError made of it
    """What a system has no words for, one sentence each."""

    def __init__(self, *losses: str) -> None:
        super().__init__("; ".join(losses))


@dataclass(frozen=True)
class Target:
    """A system to export to.

    `follows` names the documentation whose terms are used; `says` is what it can say, and so the remedy
    where it cannot. `form` is json, or text for a document that is not JSON (its part is ``profile``).
    """

    name: str
    follows: str
    says: str
    write: Callable[[SearchConfig], Parts]
    form: str = "json"
    intents: bool = False
    """Whether it has strategies by intent of its own."""


@dataclass(frozen=True)
class Export:
    """A configuration in a target's terms: the parts of the document, and what to know about them."""

    target: Target
    strategy: str
    parts: dict[str, Any]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The parts under their names, and `about`: target, what its terms follow, strategy and notes."""
        about = {
            "target": self.target.name,
            "follows": self.target.follows,
            "strategy": self.strategy,
            "notes": list(self.notes),
        }
        return {"about": about, **self.parts}

    def __str__(self) -> str:
        """What is written to a file, ended by a newline: canonical JSON, or text with the notes as comments."""
        if self.target.form == "json":
            return canonical(self.to_json())
        head = [f"strategy: {self.strategy}", f"follows: {self.target.follows}", *self.notes]
        return "".join(f"# {line}\n" for line in head) + str(self.parts["profile"])
