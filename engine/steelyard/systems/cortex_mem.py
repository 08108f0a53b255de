"""Cortex-Mem: abstracts gate overviews, overviews refine, details decide; it relaxes until something is found."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from steelyard.base.files import data
from steelyard.finish import AtLeast, Cut, Stage, parse_stages
from steelyard.fusion import Expr, parse_strategy
from steelyard.grammar import number_text
from steelyard.memory.entry import Entry, Hit
from steelyard.memory.query import Intent
from steelyard.retrievers.heuristics import entities, keywords
from steelyard.systems.base import generations

if TYPE_CHECKING:
    from steelyard.results import SearchResult

# Where a memory lies: cortex://session/..., its directory, its file

SCHEME = "cortex://"
DIMENSIONS = ("resources", "user", "agent", "session")
LAYER_FILES = {".abstract.md": "l0", ".overview.md": "l1"}
"""The files of a directory's abstract and overview, and the fields they fill."""
TIMELINE = "/timeline"
"""What makes a URI one of the messages of a session, anywhere in it."""


def directory_of(uri: str) -> str:
    """The directory whose abstract and overview stand for a URI; itself where it is not a file.

    >>> directory_of("cortex://user/preferences/language.md")
    'cortex://user/preferences'
    """
    folder, slash, name = uri.rpartition("/")
    is_file = name in LAYER_FILES or (name.endswith(".md") and not name.startswith("."))
    return folder if slash and is_file else uri


def timeline_of(uri: str) -> str:
    """The directory of a message; any other URI is its own, so that its directory's layers do not reach it.

    The real program looks for the content of other directories under the URI of the directory itself.
    """
    return directory_of(uri) if TIMELINE in uri else uri


# What kind of question a query is, and how similar an abstract must be before its directory is opened

GENERAL, ENTITY = "general", "entity"
"""What no rule fits; and the name of a thing, for which the shipped program tests first."""
TABLES: dict[str, Any] = data(__package__, "cortex_mem.json")
"""The rules of each profile: the document's examples, filled up by the words of the real program as whole words;
the real program's, which looks for temporal words first, and also inside other words; and the newest program's
(0bbcdb1), with the words that it adds to a query. Beside them thresholds, with those of retries that can find
anything, the weights of layers, the least score of a result, strategies and stages."""
_QUESTION_WORDS = frozenset(TABLES["shipped"]["question_words"])
_CJK = re.compile(r"[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff]{2,4}")


def _first_that_fits(profile: str, text: str) -> str:
    rules: dict[str, str] = TABLES[profile]["rules"]
    return next((intent for intent, rule in rules.items() if re.search(rule, text)), GENERAL)


def intent_of(text: str) -> Intent:
    """The intent that the document's table gives a query; the first row that fits.

    >>> [intent_of(q).name for q in ("When did we deploy?", "Look for tokens", "last week's notes", "user's key")]
    ['factual', 'search', 'temporal', 'general']
    """
    return Intent(_first_that_fits("documented", text.lower().strip()))


def intent_shipped(text: str) -> str:
    """The intent of the real program."""
    return _first_that_fits("shipped", text.lower())


def is_entity(text: str) -> bool:
    """Whether the real program takes a query for the name of a thing, whose threshold is 0.4.

    One or two words of at most 20 characters that begin with a capital and hold no question word, or one word
    of two to four Chinese characters.
    """
    words = text.split()
    if len(words) == 1 and _CJK.fullmatch(words[0]):
        return True
    short = 0 < len(words) <= 2 and len(text) <= 20
    return short and text[0].isupper() and not _QUESTION_WORDS & {word.lower() for word in words}


def classify_shipped(text: str) -> Intent:
    """What decides the threshold of the real program: entity, or else the intent."""
    return Intent(ENTITY if is_entity(text) else intent_shipped(text))


def intent_newest(text: str) -> Intent:
    """The intent that the newest program gives a query without a language model, by words inside other words, too.

    >>> [intent_newest(q).name for q in ("What is the time?", "Who is Ada", "sort lists", "deploy steps")]
    ['temporal', 'entity_lookup', 'search', 'factual']
    """
    return Intent(_first_that_fits("newest", text.lower()))


def rewritten_newest(text: str) -> str:
    """What the newest program embeds without a language model: the query among its names, keywords and more.

    >>> rewritten_newest("deploy steps for Ada")
    'Ada ada context deploy deploy steps for Ada details fact for steps'
    """
    added = TABLES["newest"]["added_words"][intent_newest(text).name]
    return " ".join(sorted({text, *entities(text), *keywords(text)[:6], *added}))[:LONGEST_SNIPPET]


# Strategies and stages


def _search(profile: str, threshold: float | None, limit: int, direct: bool) -> tuple[Expr, tuple[Stage, ...]]:
    """What a profile does for a threshold that is asked for, and in a direct search: everything by its best layer.

    The document's threshold gates abstracts and cuts what they find; the ladder goes on below it, for every intent
    alike. A directory that only its own layers found is left out. In the programs intents decide which abstracts
    are opened and the threshold cuts results alone, directories among them; one retry is before the best layer of
    everything. The first search looks at three times the limit of abstracts, and the retry at five times.

    The newest program adds a bonus by place and words after the cut, and its scope acts on all results. In its
    last resort and direct search details count 0.08 more than they are similar, overviews 0.04 and abstracts 0.08
    less.
    """
    table, made = TABLES[profile], dict[str, str]()
    cut, ladder = number_text(table["cut"] if threshold is None else threshold), table.get("asked", ())
    texts = table["direct_stages" if direct else "stages"]
    stages = parse_stages([text.format(limit=limit, cut=cut) for text in texts])
    if direct and "direct" in table:
        return parse_strategy(table["direct"]), stages
    all_steps: dict[str, list[float]] = table["steps"]
    if threshold is not None and ladder:
        all_steps = {GENERAL: [threshold, *(step for step in ladder if step < threshold)]}
    for intent, steps in all_steps.items():
        weights = table["weights"].get(intent, table["weights"][GENERAL])
        layers = ", ".join(f"{number_text(weight)}*l{i}" for i, weight in enumerate(weights))
        first, *again = map(number_text, [2.0] if direct else steps)  # no cosine reaches 2
        known = {"layers": layers, "first": first, "again": ", ".join(again), "cut": cut}
        made[intent] = table["search"].format(**known, near=3 * limit, far=5 * limit)
    others = [f", {intent}={text}" for intent, text in made.items() if text != made[GENERAL]]
    searches = f"by_intent(default={made[GENERAL]}{''.join(others)})" if others else made[GENERAL]
    return parse_strategy(table["whole"].format(search=searches)), stages


SEARCHES = {profile: partial(_search, profile) for profile in TABLES}

# How results are shown

CONTEXT = 100
"""Characters shown before and after a match."""
LONGEST_SNIPPET = 200
"""Characters of a snippet."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Snippet:
    """A part of a text, and the half-open spans of it that are the query's words, in ascending order."""

    text: str
    highlights: tuple[tuple[int, int], ...] = ()

    def to_json(self) -> dict[str, object]:
        """The fields of a result."""
        return {"snippet": self.text, "highlights": [list(span) for span in self.highlights]}


def snippet(text: str, query: str) -> Snippet:
    """At most 200 characters of the text around the first match of the query, with its words as highlights.

    The match is the query as a whole, else the first of its words, whatever their case. 100 characters
    stand before and after it, fewer where the whole would be longer than 200. A text without a match is
    shown from its beginning. (Document, section 6.1.)
    """
    whole = query.strip()
    match = re.search(re.escape(whole), text, re.IGNORECASE) if 0 < len(whole) <= LONGEST_SNIPPET else None
    spans = (match.span(),) if match is not None else _highlights(text, query)
    if not spans:
        return Snippet(text[:LONGEST_SNIPPET])
    begin, end = spans[0]
    room = max(0, LONGEST_SNIPPET - (end - begin))
    before = max(0, min(begin, CONTEXT, room // 2 if end + CONTEXT < len(text) else room))
    first = max(0, begin - before)
    part = text[first : min(len(text), end + CONTEXT, first + LONGEST_SNIPPET)]
    return Snippet(part, _highlights(part, query))


def _highlights(text: str, query: str) -> tuple[tuple[int, int], ...]:
    words = {word.lower() for word in _WORD.findall(query)}
    return tuple(match.span() for match in _WORD.finditer(text) if match.group().lower() in words)


def snippet_shipped(text: str, query: str) -> str:
    """What the real program shows: a window around the whole query, with ``...`` in front where it was cut.

    It may be longer than 200 characters, and a query whose words stand apart has no match.
    """
    start = text.lower().find(query.lower())
    if start < 0:
        return beginning(text)
    first = max(0, start - CONTEXT)
    return ("..." if first else "") + text[first : min(len(text), start + len(query) + CONTEXT)]


def beginning(text: str) -> str:
    """The first 200 characters, with ``...`` where there are more."""
    return text if len(text) <= LONGEST_SNIPPET else text[:LONGEST_SNIPPET] + "..."


def content(entry: Entry) -> str:
    """What a result is about: its text, or of a directory the overview or the abstract."""
    return entry.text or entry.l1 or entry.l0


def uri_or_id(entry: Entry) -> str:
    """The URI of an entry, or its id where it has none."""
    return entry.uri or entry.id


def scan(hit: Hit) -> dict[str, object]:
    """The documented result: where it lies, and how similar it is."""
    return {"uri": uri_or_id(hit.entry), "score": hit.score}


def quoted(hit: Hit, result: SearchResult) -> dict[str, object]:
    """The documented result with its snippet, and the spans of it that are words of the query."""
    return scan(hit) | snippet(content(hit.entry), result.query.text).to_json()


def full_result(hit: Hit, result: SearchResult | None = None) -> dict[str, object]:
    """The result of the real program: with its content, and in answers a snippet that highlights nothing."""
    return _with_snippet(hit, None if result is None else result.query.text)


def newest_result(hit: Hit, result: SearchResult | None = None) -> dict[str, object]:
    """The result of the newest program, whose snippet is around what it embedded."""
    return _with_snippet(hit, None if result is None else result.query.embedded)


def _with_snippet(hit: Hit, asked: str | None) -> dict[str, object]:
    text = content(hit.entry)
    return scan(hit) | {"content": text} | ({} if asked is None else {"snippet": snippet_shipped(text, asked)})


@dataclass(frozen=True)
class LayerRow:
    """A layer of an entry that is similar enough: l0, l1 or l2, its cosine and its text."""

    entry: Entry
    layer: str
    score: float
    text: str

    def to_json(self) -> dict[str, object]:
        """What both profiles show of it."""
        return {"uri": uri_or_id(self.entry), "score": self.score, "layer": self.layer}


def rows(result: SearchResult) -> list[LayerRow]:
    """The results of a direct search, best first, as many as its limit; a hit is there once for each layer."""
    least = max(stage.score for stage in result.finish if isinstance(stage, AtLeast))
    limit = min(stage.limit for stage in result.finish if isinstance(stage, Cut))
    columns = result.table.columns
    every = [
        LayerRow(hit.entry, layer, float(columns[layer][result.row(hit)]), getattr(hit.entry, field))
        for hit in result.hits
        for layer, field in (("l0", "l0"), ("l1", "l1"), ("l2", "text"))
        if layer in columns
    ]
    near = (row for row in every if row.score >= least)  # the cosine of a layer that it lacks is NaN
    return sorted(near, key=lambda row: (-row.score, uri_or_id(row.entry).encode(), row.layer))[:limit]


def rows_with_snippets(result: SearchResult, content: bool) -> list[dict[str, object]]:
    """The rows with their snippets, and with their texts where these are asked for."""
    asked = result.query.text
    shown = [(row.text, row.to_json() | snippet(row.text, asked).to_json()) for row in rows(result)]
    return [row | {"content": text} if content else row for text, row in shown]


def shipped_rows_with_snippets(result: SearchResult, content: bool) -> list[dict[str, object]]:
    """The rows as the real program shows them, always with their texts."""
    return [row.to_json() | {"snippet": beginning(row.text), "content": row.text} for row in rows(result)]


PROFILES = DOCUMENTED, SHIPPED, NEWEST = generations("cortex_mem", globals() | SEARCHES)
