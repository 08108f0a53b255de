"""Views of a result: each reads a Result and nothing else, decides nothing, and holds no sentence."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from steelyard_eval.result.structs import Result


def render(result: Result, view: str, **options: object) -> str:
    """The result as text of a view; `options` are the view's own, such as `short` of a table."""
    made: Callable[..., str] = import_module(f"steelyard_eval.views.{view}").render
    return made(result, **options)
