"""Progress bars on stderr, for what takes longer than two seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def bar(label: str) -> Callable[[Sequence[T]], Iterable[T]]:
    """A wrapper for a sequence that shows its progress once two seconds have passed, on a terminal only."""
    from tqdm import tqdm

    def wrap(items: Sequence[T]) -> Iterable[T]:
        shown: Iterable[T] = tqdm(items, desc=label, delay=2, leave=False, dynamic_ncols=True, disable=None)
        return shown

    return wrap
