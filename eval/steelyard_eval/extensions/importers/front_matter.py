"""The front matter of a note: YAML between two lines of ---, and what people write there that is none."""

from __future__ import annotations

import re

from steelyard.base.errors import DataError
from steelyard_eval.extensions.importers.source import read_yaml

LARGEST_HEADER = 65_536
"""Characters of front matter."""
WORDS_OF_A_KEY = 3
"""A line with more words before its colon is a sentence."""
_KEY = re.compile(r"^(?![ \t#\-\[\]{},])([^:\n]+):(?=[ \t]|$)", re.MULTILINE)
"""A key that begins a line."""


def read_front_matter(text: str) -> tuple[str, str, dict[str, object], dict[str, str]]:
    """Header as written, body, values by key, and what is odd: `yaml` for what is none, `numbers`.

    A header that is no YAML is read key by key; a value that cannot be read stays text. What stands between two
    rules at the top and has no keys is prose: the header is then empty, and the body all of the text.
    """
    header, body = _parted(text)
    if not header.strip():
        return "", body, {}, {}
    numbers = list[str]()
    try:
        front, odd = read_yaml(header, "", numbers), {}
    except DataError as error:
        front, odd = _by_key(header, numbers), {"yaml": str(error).removeprefix(" ")}
    if not isinstance(front, dict) or any(len(str(key).split()) > WORDS_OF_A_KEY for key in front):
        return "", text.strip(), {}, {}
    values = {str(key): value for key, value in front.items()}
    return header, body, values, odd | ({"numbers": ", ".join(numbers)} if numbers else {})


def _parted(text: str) -> tuple[str, str]:
    """The front matter, empty without any, and the body without blank lines around it."""
    first, _, rest = text.partition("\n")
    if first.rstrip() == "---":
        at = 0
        for line in rest[:LARGEST_HEADER].split("\n"):
            if line.rstrip() in ("---", "..."):
                return rest[:at], rest[at + len(line) :].strip()
            at += len(line) + 1
    return "", text.strip()


def _by_key(header: str, numbers: list[str]) -> dict[str, object] | None:
    """The values of the keys that stand at the beginning of a line, each read alone; None if none is first."""
    keys = list(_KEY.finditer(header))
    ends = [*(key.start() for key in keys[1:]), len(header)]
    front: dict[str, object] = {}
    loose = header[: keys[0].start() if keys else len(header)].split("\n")
    if any(line.strip() and not line.startswith("#") for line in loose):
        return None
    for key, end in zip(keys, ends, strict=True):
        lines = header[key.start() : end].removesuffix("\n").split("\n")
        inside = (i for i, line in enumerate(lines) if i and line[:1] not in ("", " ", "\t", "-", "]", "}"))
        size = next(inside, len(lines))
        loose += lines[size:]
        try:
            front |= read_yaml("\n".join(lines[:size]), "", numbers)
        except (DataError, TypeError):
            front[key[1].strip().strip("\"'")] = _as_written(lines[:size])
    loose = [line for line in loose if line.strip() and not line.startswith("#")]
    return front | ({"unread": loose} if loose else {})


def _as_written(lines: list[str]) -> str | list[str]:
    """The value of a key as text, without quotes around it; a list where every further line is an item."""
    first = lines[0].partition(":")[2].strip()
    rest = [line.strip() for line in lines[1:] if line.strip()]
    if rest and not first and all(line.startswith("- ") for line in rest):
        return [line[2:].strip() for line in rest]
    text = "\n".join([first, *rest]).strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
