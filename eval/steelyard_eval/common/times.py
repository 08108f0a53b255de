"""Times as other programs write them: text of a date, or numbers of any unit."""

from contextlib import suppress

from steelyard.base.fields import END_OF_TIME, FIRST_TIME, parse_number, parse_time
from steelyard.base.files import LONGEST_INTEGER

SHORTEST_NUMBER = 9
"""Characters of a text that is a number of seconds or less; a shorter one is a date, such as 20260810."""
_UNITS = ((1e11, 1), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9))
"""Numbers below the first are in the unit that the second divides."""


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
