"""SOURCE_DATE_EPOCH: the time that stands for now in reproducible files (reproducible-builds.org)."""

from __future__ import annotations

import os

from steelyard.base.errors import ConfigError, shown

NAME = "SOURCE_DATE_EPOCH"
LAST = 253_402_300_799
"""The last second of the year 9999."""


def source_date() -> int | None:
    """Return the seconds of the variable; None where it is unset or empty. ConfigError for what is no time."""
    text = os.environ.get(NAME, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= LAST):
        raise ConfigError(f"{NAME} {shown(text)} is no whole number of seconds from 0 to {LAST}; unset it")
    return int(text)


def checked_source_date() -> None:
    """Refuse a bad time before libraries read it as they load, and unset an empty one, on which they fail."""
    if source_date() is None:
        os.environ.pop(NAME, None)
