"""Progress: a bar after two seconds in a terminal or a notebook, a line every ten seconds elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

LOGGER = logging.getLogger("steelyard")
DELAY = 2.0
"""Seconds before a bar is shown."""
EVERY = 10.0
"""Seconds between two lines where nobody can see a bar, as in continuous integration."""
T = TypeVar("T")


class Wrapper(Protocol):
    """Wraps a sequence."""

    def __call__(self, items: Sequence[T]) -> Iterable[T]:
        """The items."""


def bar(label: str) -> Wrapper:
    """A wrapper for a sequence that shows how far it is once two seconds have passed; nothing under --quiet."""

    def wrap(items: Sequence[T]) -> Iterable[T]:
        if not LOGGER.isEnabledFor(logging.WARNING):
            return items
        return _bar(items, label) if _has_bar() else _lines(items, label)

    return wrap


def _has_bar() -> bool:
    """Whether somebody sees a bar that moves: in a terminal, or in a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def _bar(items: Sequence[T], label: str) -> Iterable[T]:
    if "ipykernel" in sys.modules:
        from tqdm.auto import tqdm
    else:
        from tqdm import tqdm

    shown: Iterable[T] = tqdm(items, desc=label, delay=DELAY, leave=False, dynamic_ncols=True)
    return shown


def _lines(items: Sequence[T], label: str, clock: Callable[[], float] = time.monotonic) -> Iterator[T]:
    """A line on stderr every ten seconds, each between two items."""
    begin = clock()
    due = begin + EVERY
    for done, item in enumerate(items):
        now = clock()
        if now >= due:
            due = now + EVERY
            left = f", about {(now - begin) / done * (len(items) - done):.0f} s left" if done else ""
            print(f"{label}: {done} of {len(items)}{left}", file=sys.stderr, flush=True)  # noqa: T201 -- progress
        yield item
