"""Progress bars on stderr, for what takes longer than two seconds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

LOGGER = logging.getLogger("steelyard")
T = TypeVar("T")


class Wrapper(Protocol):
    """Wraps a sequence; `status` gives a word on how it goes, asked for after each item."""

    def __call__(self, items: Sequence[T], status: Callable[[], str] | None = None) -> Iterable[T]:
        """The items."""


def bar(label: str) -> Wrapper:
    """A wrapper for a sequence that shows its progress once two seconds have passed, on a terminal only."""
    from tqdm import tqdm

    quiet = True if not LOGGER.isEnabledFor(logging.WARNING) else None  # None: where stderr is no terminal

    def wrap(items: Sequence[T], status: Callable[[], str] | None = None) -> Iterable[T]:
        shown = tqdm(items, desc=label, delay=2, leave=False, dynamic_ncols=True, disable=quiet)
        for item in shown:
            yield item
            if status is not None:
                shown.set_postfix_str(status(), refresh=False)

    return wrap
