"""What an answer names: its ids, by a path that is named or by where searches put them; and entries.

Programs show their agents less than a whole id, or another name: the first characters, a title, a path. Such a
name counts where it is one entry's and no other's.
"""

import json
import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib import resources
from typing import Any
from urllib.parse import unquote

from steelyard.base.errors import ConfigError, nearest, quote
from steelyard.base.extensions import require
from steelyard.base.files import STRICT_JSON
from steelyard.extensions.network.endpoint import Response
from steelyard.memory.entry import Entry
from steelyard_eval.common.formatting import counted

NAMES: Mapping[str, list[str]] = STRICT_JSON.decode(
    resources.files(__package__).joinpath("names.json").read_text("utf-8")
)
"""What programs call lists of results, ids and entries; what tools call the text and the number of results."""
DEEPEST, PLACES = 5, 2000  # How deep, and in how many places, a list of results is looked for
MANY = 10_000  # The largest number of results of one query that are read
MOST_VALUES = 200_000  # Commas of an answer: jmespath takes microseconds for each value, however few bytes it has
LONGEST_TEXT = 10_000  # Characters of an id

SHORTEST = 8  # Characters of an id, or of its beginning, that is looked for in prose or taken for a whole one
_HALF = re.compile("[\ud800-\udfff]")  # Of a surrogate pair, which no file can hold
_WORD = re.compile(rf"[^\s\"'`,;|<>()\[\]{{}}*]{{{SHORTEST},{LONGEST_TEXT}}}")


class FormError(ValueError):
    """The answer does not have what was looked for: what it is instead."""


def ids_of(document: object, path: str = "") -> tuple[str, list[str]]:
    """Where the ids of an answer stand, and the ids, best first; FormError when the answer has none.

    They stand at a JMESPath expression (a leading ``$.`` is allowed), else in the first list that looks like
    results, the usual names first.

    >>> ids_of({"took": 3, "hits": [{"id": "a"}]}), ids_of(["a"]), ids_of({"results": []})
    (('hits[*].id', ['a']), ('[*]', ['a']), ('results', []))
    >>> ids_of({"data": {"results": [{"entry": {"id": "a"}, "score": 1}]}})
    ('data.results[*].entry.id', ['a'])
    """
    place, ids = (path, path_of(path).search(document)) if path else _guessed(document)
    if not isinstance(ids, list) or not all(isinstance(id_, str | int) for id_ in ids):
        raise FormError(f"has no list of ids at {place}; name the path with ids=")
    names = [str(id_) for id_ in ids[:MANY]]
    if any(len(name) > LONGEST_TEXT or _HALF.search(name) for name in names):
        raise FormError(f"has an id that is not Unicode, or longer than {LONGEST_TEXT} characters")
    return place, names


def _guessed(document: object) -> tuple[str, object]:
    empty = None
    ahead = deque([("", document, 0)])
    for _ in range(PLACES):
        if not ahead:
            break
        path, value, depth = ahead.popleft()
        usual = not path or path.rpartition(".")[2] in NAMES["lists"]
        if isinstance(value, list):
            if (found := _inner(value, usual)) is not None:
                return f"{path}[*]{found[0]}", found[1]
            if not value and usual and empty is None:
                empty = path or "@"
        elif isinstance(value, dict) and depth < DEEPEST:
            names = [name for name in NAMES["lists"] if name in value] + [
                n for n in value if _plain(n) and n not in NAMES["lists"]
            ]
            names = names[: PLACES - len(ahead)]
            ahead.extend((f"{path}.{name}" if path else name, value[name], depth + 1) for name in names)
    if empty is None:
        raise FormError("has no list of ids where they are looked for; name the path with ids=")
    return empty, []


def _inner(items: list[Any], usual: bool) -> tuple[str, list[Any]] | None:
    if usual and items and all(isinstance(item, str | int) and not isinstance(item, bool) for item in items):
        return "", items
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    outer = [name for name, value in list(items[0].items())[:PLACES] if isinstance(value, dict) and _plain(name)]
    for wrap in ("", *outer):
        for key in NAMES["keys"]:
            inside = (item.get(wrap) if wrap else item for item in items)  # looked at up to the first without one
            if all(isinstance(value, dict) and isinstance(value.get(key), str | int) for value in inside):
                return f".{wrap}.{key}" if wrap else f".{key}", [(i[wrap] if wrap else i)[key] for i in items]
    return None


def filled(template: Any, text: str, limit: int) -> Any:  # noqa: ANN401 -- any JSON value
    """A template of JSON, with ``"{limit}"`` as a number and the text in place of ``{query}``."""
    if isinstance(template, dict):
        return {name: filled(value, text, limit) for name, value in template.items()}
    if isinstance(template, list):
        return [filled(value, text, limit) for value in template]
    if template == "{limit}":
        return limit
    return template.replace("{query}", text) if isinstance(template, str) else template


def json_of(text: str) -> Any:  # noqa: ANN401 -- any JSON value
    """A JSON value within the bounds of an endpoint's answer; None where the text is none."""
    try:
        return Response(200, {}, text).json(MOST_VALUES)
    except ValueError:
        return None


def document_of(answer: object) -> object:
    """The JSON value that a tool answered: structured, or in its texts, a value or one each; None for prose.

    An answer is a text, the blocks of one, or what a tool of MCP returns.
    """
    if isinstance(answer, Mapping):
        if answer.get("structuredContent") is not None:
            return answer["structuredContent"]
        return document_of(answer["content"]) if _texts(answer.get("content")) else dict(answer)
    if isinstance(answer, list) and (texts := _texts(answer)):
        values = [_json_in(text) for text in texts]
        return None if None in values else values[0] if len(values) == 1 else values
    return _json_in(answer) if isinstance(answer, str) else answer


def text_in(answer: object) -> str:
    """The text in a value: itself, or of the blocks of a message one after the other."""
    if isinstance(answer, Mapping):
        parts = (text_in(answer.get(key)) for key in ("text", "content", "parts", "message", "output", "answer"))
        return next(filter(None, parts), "")
    if isinstance(answer, list):
        return "\n".join(filter(None, map(text_in, answer)))
    return answer if isinstance(answer, str) else ""


def _texts(blocks: object) -> list[str]:
    """The texts in the blocks of an answer, each of which has a type; none where this is another list."""
    if not isinstance(blocks, list) or not all(
        isinstance(b, dict) and isinstance(b.get("type"), str) for b in blocks
    ):
        return []
    return [block["text"] for block in blocks if block["type"] == "text" and isinstance(block.get("text"), str)]


def _json_in(text: str) -> object:
    """The object or list in a text, which some clients put words before; None where there is none."""
    starts = [start for start in (text.find("["), text.find("{")) if start >= 0]
    for start in dict.fromkeys((0, *([min(starts)] if starts else []))):
        if isinstance(value := json_of(text[start:]), dict | list):
            return value
    return None


def options_of(text: str, names: Sequence[str], place: str) -> list[str]:
    """The values of options behind an address, as in ``ids=PATH&body=JSON``; empty for those that are not there.

    Raises ConfigError, which begins with `place`, for another name.
    """
    given = {name: unquote(value) for name, _, value in (pair.partition("=") for pair in text.split("&") if pair)}
    if unknown := [name for name in given if name not in names]:
        raise ConfigError(f"{place}: unknown {quote(unknown[0])}{nearest(unknown[0], names)}")
    return [given.get(name, "") for name in names]


def template_of(text: str, what: str) -> Any:  # noqa: ANN401 -- any JSON value
    """JSON with placeholders; ConfigError when it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f'the {what} {quote(text)} is not JSON ({error}); write placeholders in quotes, as "{{limit}}"'
        ) from None


def _plain(name: str) -> bool:
    """Whether a name can stand in a path without quotes."""
    return len(name) <= 100 and name.isascii() and name.isidentifier()


@cache
def path_of(text: str) -> Any:  # noqa: ANN401 -- jmespath publishes no types
    """A path, ready to be looked up; ConfigError for one that cannot be parsed."""
    require("api", "a path into an answer")
    import jmespath

    try:
        return jmespath.compile(text.removeprefix("$."))
    except jmespath.exceptions.JMESPathError as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"path {quote(text)} cannot be read ({reason}); write it as hits.hits[*]._id") from None


class Mentioned:
    """The names of a corpus; `notices` count what was matched otherwise than by ids."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._by: Counter[str] = Counter()
        self._silent = 0
        self._known = {entry.id for entry in entries}

    @property
    def notices(self) -> list[str]:
        """How many places were matched by what, and how many by nothing."""
        by = [f"{count} by {what}" for what, count in self._by.items() if what]
        told = f"places of its lists were found in the corpus by other names than ids: {', '.join(by)}"
        notices = [told] if by else []
        if none := self._by.get("", 0):
            notices.append(f"{none} places of its lists name no entry of the corpus, and count as not relevant")
        if self._silent:
            notices.append(f"{counted(self._silent, 'answer')} in prose, in which the id of no entry stands")
        return notices

    def in_text(self, text: str) -> list[str]:
        """The entries whose ids, or the beginnings of them, stand in a text, in the order in which they do."""
        words = (word.strip(".:!?#") for word in _WORD.findall(text))
        ids = dict.fromkeys(id_ for word in words if (id_ := self._whole(word)))
        self._silent += not ids
        return list(ids)[:MANY]

    def named(self, name: str) -> str | None:
        """The id of the one entry that has this id or name, or whose id begins with it; None for none."""
        if name in self._known:
            return name
        what, id_ = self._others.get(name, ("", ""))
        if not id_ and (whole := self._whole(name)):
            what, id_ = "the beginning of an id", whole
        self._by[what] += 1
        return id_ or None

    def _whole(self, word: str) -> str | None:
        if word in self._known or len(word) < SHORTEST:
            return word if word in self._known else None
        begin = bisect_left(self._sorted, word)  # the ids that begin with it follow one another from here on
        fitting = [id_ for id_ in self._sorted[begin : begin + 2] if id_.startswith(word)]
        return fitting[0] if len(fitting) == 1 else None

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._known)

    @cached_property
    def _others(self) -> dict[str, tuple[str, str]]:
        """Other names of one entry alone: what it is called by, and its id."""
        others: dict[str, tuple[str, str]] = {}
        twice = set()
        for entry in self._entries:
            pairs: list[tuple[Any, str]] = [(entry.uri, "uri"), (entry.title, "title")]
            pairs += [(entry.extra.get(name), name) for name in NAMES["entries"]]
            for name, what in ((name, what) for name, what in pairs if isinstance(name, str) and name):
                if others.get(name, ("", entry.id))[1] != entry.id:
                    twice.add(name)
                others.setdefault(name, (what, entry.id))
        return {name: other for name, other in others.items() if name not in twice}
