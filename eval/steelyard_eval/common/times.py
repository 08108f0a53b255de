"""Times as other programs write them: text of a date, or numbers of any unit."""

import re
from contextlib import suppress
from datetime import datetime

from steelyard.base.fields import END_OF_TIME, FIRST_TIME, parse_number, parse_time
from steelyard.base.files import LONGEST_INTEGER

SHORTEST_NUMBER = 9
"""Characters of a text that is a number of seconds or less; a shorter one is a date, such as 20260810."""
_UNITS = ((1e11, 1), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9))
"""Numbers below the first are in the unit that the second divides."""

LONGEST_TIME = 64  # Characters of a time
_CALENDAR = {4: "%Y", 8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
"""Digits of a date that is written without marks, by how many there are; others are seconds, or parts of them."""
_YEARS = range(1900, 2101)
_DATE = re.compile(r"(\d{4})[-/.](\d{1,2})(?:[-/.](\d{1,2}))?(?!\d)(.*)", re.DOTALL)
_ZONE = re.compile(r"\s*(?:UTC|GMT)$|\s+(?=[+-]\d\d:?\d\d$)")


def seconds(value: object) -> float | None:
    """A time in seconds UTC, from ISO 8601 or a number since 1970, were it text; None for what is none.

    A number is of seconds, milliseconds, microseconds or nanoseconds: its size says which, because in each of the
    others it would lie before March 1973 or after the year 5000.

    >>> seconds(1786356000), seconds(1786356000000), seconds("1786356000000000000")
    (1786356000.0, 1786356000.0, 1786356000.0)
    """
    if isinstance(value, str) and SHORTEST_NUMBER <= len(value) < LONGEST_INTEGER:
        with suppress(ValueError):  # text of a date
            value = int(value) if value.isascii() and value.isdigit() else parse_number(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        unit = next((unit for most, unit in _UNITS if abs(value) < most), None)
        if unit is None or not value:  # 0 is how protobuf writes that a time is not known
            return None
        value = value / unit
    try:
        time = parse_time(value)
        return time if FIRST_TIME <= time < END_OF_TIME else None
    except (ValueError, OverflowError):
        return None


def time_of(value: object) -> object:
    """A time in a form that `parse_time` reads, if it can be read in one way only; else the value as it is.

    A month stands for its first day. Numbers beyond the year 9999 are milliseconds, or still smaller parts.

    >>> time_of("2026/3/1 10:00 UTC"), time_of(1772323200000), time_of("20260301"), time_of("01/03/2026")
    ('2026-03-01 10:00+00:00', 1772323200.0, '2026-03-01T00:00:00', '01/03/2026')
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    text = str(value).strip()
    if text.isascii() and text.isdigit() and (form := _CALENDAR.get(len(text))):
        with suppress(ValueError):
            day = datetime.strptime(text, form)
            if day.year in _YEARS:
                return day.isoformat()
    if len(text) <= LONGEST_TIME and (dated := _DATE.fullmatch(text)):
        year, month, day_, rest = dated.groups(default="1")
        rest = _ZONE.sub(lambda match: "+00:00" if match[0].strip() else "", rest)
        return f"{year}-{int(month):02}-{int(day_):02}{rest}"
    if not isinstance(value, str) and abs(value) < END_OF_TIME:
        return value
    return seconds(value) or value
