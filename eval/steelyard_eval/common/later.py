"""Imports that are made when they are first needed, so that `steelyard --help` loads nothing that searches.

They stand at the top of a module, where readers, type checkers and the test of the rooms see them. Python 3.15 has
a statement for it (PEP 810).
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any


@contextmanager
def later(module: str) -> Iterator[None]:
    """In this block ``from x import y`` imports `x` when `y` is used; `module` is the `__name__` of the caller.

    `y` may be a function, a class, a module, a text to print, or a collection to iterate over.
    """
    at_once = builtins.__import__

    def deferred(name: str, scope: Any = None, local: Any = None, wanted: Any = (), level: int = 0) -> Any:  # noqa: ANN401 -- as Python calls it
        if (scope or {}).get("__name__") != module:
            return at_once(name, scope, local, wanted, level)
        return SimpleNamespace(**{own: _Later(name, own) for own in wanted})

    builtins.__import__ = deferred  # type: ignore[assignment]  # put back below
    try:
        yield
    finally:
        builtins.__import__ = at_once


class _Later:
    """Stands for a name of a module; looked up anew at each use, so that tests can replace it there."""

    def __init__(self, module: str, name: str) -> None:
        self._place = module, name

    def _real(self) -> Any:  # noqa: ANN401 -- whatever the module has
        module, name = self._place
        home = import_module(module)
        return getattr(home, name) if hasattr(home, name) else import_module(f"{module}.{name}")

    def __call__(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 -- as the real one
        return self._real()(*args, **options)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- as above
        return getattr(self._real(), name)

    def __str__(self) -> str:
        return str(self._real())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._real())

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self._real())
