"""What there is of a kind, by name: a name that is taken is refused, and other packages bring more.

A package of your own names what it brings under an entry point such as ``steelyard.fusions``; it is imported when
a text names it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, TypeVar

from steelyard.base.errors import ConfigError, shown

Declared = TypeVar("Declared")


class Registry(dict[str, Declared]):
    """Declarations of a kind by their names.

    Attributes
    ----------
    kind : str
        What they are, in words: ``fusion``.
    """

    def __init__(self, kind: str, attribute: str, declared: Iterable[Declared]) -> None:
        """`attribute` is what the name of a declaration is called."""
        super().__init__()
        self.kind = kind
        for one in declared:
            self[getattr(one, attribute)] = one

    def __setitem__(self, name: str, declared: Declared) -> None:
        """Add a declaration; ConfigError where its name is taken."""
        if name in self and self[name] is not declared:
            raise ConfigError(
                f"{self.kind} {shown(name)} is declared twice, by {_home(self[name])} and by {_home(declared)}; "
                "rename one of them"
            )
        super().__setitem__(name, declared)

    def find(self, name: str) -> Declared | None:
        """The declaration of a name, ours or that of an installed package; None where nobody has it.

        ConfigError where the package's cannot be loaded.
        """
        if name not in self and (point := _brought(f"steelyard.{self.kind}s").get(name)) is not None:
            try:
                self[name] = point.load()
            except (ImportError, AttributeError) as error:
                raise ConfigError(f"cannot load {self.kind} {shown(name)} of {point.value}: {error}") from None
        return self.get(name)


@cache
def _brought(group: str) -> dict[str, Any]:
    """The entry points of a group by name, read once: a text may name thousands that nobody has."""
    from importlib.metadata import entry_points  # it loads the package email

    return {point.name: point for point in entry_points(group=group)}


def _home(declared: object) -> str:
    """The module that a declaration comes from."""
    made = getattr(declared, "compute", getattr(declared, "build", declared))
    return str(getattr(made, "__module__", type(declared).__module__))
