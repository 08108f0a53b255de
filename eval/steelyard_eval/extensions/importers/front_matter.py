"""The front matter of a note: YAML between two lines of ---, and what people write there that is none."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from steelyard.base.errors import DataError

LARGEST_HEADER = 65_536  # Characters of front matter
WORDS_OF_A_KEY = 3  # A line with more words before its colon is a sentence
_KEY = re.compile(r"^(?![ \t#\-\[\]{},])([^:\n]+):(?=[ \t]|$)", re.MULTILINE)
"""A key that begins a line."""
DEEPEST = 64  # Levels of a YAML document, as of JSON: libyaml's loader calls itself for each
_ODD = re.compile(r"[-+]?(?:\.\w+|0x\w{17,}|[\d_]{19,}(?:\.\d*)?|\d+(?::\d+){3,}(?:\.\d*)?|[\d.]+[eE][-+]?\d{3,})")
"""Infinities, and what is larger than any number that is kept exactly."""


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


@cache
def _yaml_loader() -> Any:  # noqa: ANN401 -- a class that is made of whichever loader is installed
    """A loader of plain values: true, false and null, numbers that are one, all else as it is written."""
    import yaml

    # libyaml, ten times as fast, is in all wheels of PyYAML
    loader: Any = type("Plain", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {"yaml_implicit_resolvers": {}})
    for name, pattern, first in (
        ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
        ("bool", r"true|True|TRUE|false|False|FALSE", tuple("tTfF")),
        ("int", r"[-+]?\.?(?:\d[\w.:+-]*|inf|nan|Inf|NaN|INF|NAN)", tuple("-+.0123456789")),
    ):
        loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(rf"(?:{pattern})\Z"), first)
    for name in ("int", "float"):
        loader.add_constructor(f"tag:yaml.org,2002:{name}", _yaml_number)
    return loader


def _yaml_number(loader: Any, node: Any) -> object:  # noqa: ANN401 -- PyYAML has no types
    """A number that its text stands for exactly; any other text as it is, such as 1.10, 12:30 and 2026-03-01."""
    text = str(loader.construct_scalar(node))
    if re.fullmatch(r"-?(?:0|[1-9]\d{0,17})", text):
        return int(text)
    if re.fullmatch(r"-?\d{1,9}\.\d{1,9}", text) and str(float(text)) == text:
        return float(text)
    loader.odd = [*getattr(loader, "odd", ()), *([text] if _ODD.fullmatch(text) else ())]
    return text


def read_yaml(text: str, place: str, odd: list[str] | None = None) -> Any:  # noqa: ANN401 -- any YAML value
    """A YAML document of plain values, without anchors, by which a small file could grow without end.

    DataError, which begins with `place`, when it is none, is too deep, or has anchors or tags. `odd` gets the
    numbers that no program computes with, which stay texts.
    """
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, _yaml_loader()):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > DEEPEST:
                what = "more than 64 levels of YAML" if depth > DEEPEST else "YAML anchors; write the values out"
                raise DataError(f"{place} has {what}")
        loader = _yaml_loader()(text)
        try:
            value = loader.get_single_data()
        finally:
            loader.dispose()
        if odd is not None:
            odd += getattr(loader, "odd", ())
        return value
    except (yaml.YAMLError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        reason = str(error).split("\n")[0]
        raise DataError(f"{place} is not YAML that can be read ({reason}); correct it") from None
