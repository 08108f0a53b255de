"""Exporters, which translate a configuration for another system or report what would be lost.

An exporter raises `Lost` with everything that its system cannot express; `steelyard_eval.export.export` adds the
strategy, the target and the remedy. A different ranking is never exported silently: what changes the ranking of
ordinary queries is a loss, and what depends on the system's own index, or happens in corner cases, is a note in
the document.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steelyard.base.escape import visible
from steelyard.base.files import canonical
from steelyard.config.search_config import SearchConfig

Parts = tuple[dict[str, Any], list[str]]
"""The parts of a document by name, and its notes."""


class Lost(Exception):  # noqa: N818 -- it names what is lost; users see the ConfigError made of it
    """What a system cannot express, one sentence for each loss."""

    def __init__(self, *losses: str) -> None:
        super().__init__("; ".join(losses))


@dataclass(frozen=True)
class Target:
    """A system to export to.

    Attributes
    ----------
    name: As given to ``--to``.
    follows: The documentation whose terms are used.
    says: A strategy that it can express, as the remedy in errors.
    write: From a configuration to the parts of the document and its notes.
    form: json, or text for a document that is not JSON (its part is ``profile``).
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
    """An exported configuration: the parts of the document, and notes on them."""

    target: Target
    strategy: str
    parts: dict[str, object]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the parts by name, and `about`: target, documentation, strategy and notes."""
        about = {
            "target": self.target.name,
            "follows": self.target.follows,
            "strategy": self.strategy,
            "notes": list(self.notes),
        }
        return {"about": about, **self.parts}

    def __str__(self) -> str:
        """Return the text of the file: canonical JSON, or text with the notes as comments."""
        if self.target.form == "json":
            return canonical(self.to_json())
        head = [f"strategy: {self.strategy}", f"follows: {self.target.follows}", *self.notes]
        return "".join(f"# {visible(line)}\n" for line in head) + str(self.parts["profile"])
