"""Cortex-Mem: abstracts gate overviews, overviews refine, details decide; it relaxes until something is found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.config.search_config import default_finish
from steelyard.finish import Cut, Files, Stage
from steelyard.fusion import Expr, parse_strategy
from steelyard.grammar import number_text
from steelyard.memory.entry import Entry, Hit
from steelyard.memory.text import CONTENT
from steelyard.retrievers.reading import Reading
from steelyard.stores.base import KeywordIndex
from steelyard.systems.base import ResultForms, SearchSettings, System
from steelyard.systems.cortex_mem.intents import (
    GENERAL,
    SHIPPED_THRESHOLDS,
    THRESHOLDS,
    classify_shipped,
    direct,
    intent_of,
    rows_shown,
    rows_shown_shipped,
    snippet,
    snippet_shipped,
    uri_or_id,
)
from steelyard.systems.cortex_mem.uris import directory_of, timeline_of

if TYPE_CHECKING:
    from steelyard.results import SearchResult

RETRIEVERS = ("l0", "l1", "l2", "unindexed")
LAYERS = "0.2*l0, 0.3*l1, 0.5*l2"
STEPS = (0.5, 0.4, 0.3)
"""The document's ladder."""
RELAXED = 0.3
"""How far below the start the real program's one retry looks; at 0.4 or less it looks at 0.3."""
FIRST, RETRY = 3, 5
"""Abstracts that the real program looks at, times the limit: at first, and in its retry."""


def layered(threshold: float) -> str:
    """The document's search from a threshold on: the steps of the ladder below it, then all details, uncut."""
    steps = ", ".join(number_text(step) for step in STEPS if step < threshold)
    return f"layered({LAYERS}, threshold={number_text(threshold)}, relax=[{steps}], cut=step, lacking=file)"


def layered_shipped(threshold: float, limit: int, cut: float = 0.5) -> str:
    """The real program's: one retry, a fixed cut, then the best layer of everything, whatever the scope."""
    relaxed = 0.3 if threshold <= 0.4 else round(threshold - RELAXED, 10)
    return (
        f"layered({LAYERS}, threshold={number_text(threshold)}, relax=[{number_text(relaxed)}], "
        f"cut={number_text(cut)}, depths=[{FIRST * limit}, {RETRY * limit}], lacking=estimate, then=best, "
        "scope=gate)"
    )


def strategy(threshold: float | None, limit: int) -> Expr:
    """What the document says: thresholds by intent, or the one that is asked for.

    An explicit threshold gates abstracts and cuts what they find; the ladder goes on below it.
    """
    if threshold is not None:
        return parse_strategy(layered(threshold))
    cases = _cases({intent: layered(value) for intent, value in THRESHOLDS.items()})
    return parse_strategy(f"by_intent({cases})")


def strategy_shipped(threshold: float | None, limit: int) -> Expr:
    """What the program does: intents decide which abstracts are opened, the threshold cuts results alone."""
    cut = 0.5 if threshold is None else threshold
    made = {intent: layered_shipped(value, limit, cut) for intent, value in SHIPPED_THRESHOLDS.items()}
    return parse_strategy(f"by_intent({_cases(made)})")


def _cases(made: dict[str, str]) -> str:
    """The strategies of intents that differ from the general one."""
    default = made[GENERAL]
    return ", ".join([f"default={default}", *(f"{i}={text}" for i, text in made.items() if text != default)])


def finish(limit: int) -> tuple[Stage, ...]:
    """Results are files: a directory that only its own layers found is left out."""
    return (Files("none"), Cut(limit))


def content(entry: Entry) -> str:
    """What a result is about: its text, or of a directory the overview or the abstract."""
    return entry.text or entry.l1 or entry.l0


def scan(hit: Hit) -> dict[str, object]:
    """The documented result: where it lies, and how similar it is."""
    return {"uri": uri_or_id(hit.entry), "score": hit.score}


def quoted(hit: Hit, found: SearchResult) -> dict[str, object]:
    """The documented result with its snippet, and the spans of it that are words of the query."""
    part = snippet(content(hit.entry), found.query.text)
    return scan(hit) | {"snippet": part.text, "highlights": [list(span) for span in part.highlights]}


def whole(hit: Hit) -> dict[str, object]:
    """The result of the real program, which always has its content."""
    return scan(hit) | {"content": content(hit.entry)}


def quoted_shipped(hit: Hit, found: SearchResult) -> dict[str, object]:
    """The same with its snippet, which highlights nothing."""
    return whole(hit) | {"snippet": snippet_shipped(content(hit.entry), found.query.text)}


DOCUMENTED = System(
    name="cortex_mem",
    profile="documented",
    reading=Reading(
        index=KeywordIndex("content", CONTENT, "porter unicode61"),
        recipe="{title}\n{text}",
        directory=directory_of,
        classify=intent_of,
        intents=tuple(THRESHOLDS),
    ),
    searching=SearchSettings(
        strategy=strategy(None, 10),
        retrievers=RETRIEVERS,
        depth=lambda limit: limit,
        finish=finish,
        ask=strategy,
        direct=direct,
    ),
    showing=ResultForms(scan, scan, quoted, quoted, rows_shown, content),
)

SHIPPED = replace(
    DOCUMENTED,
    profile="shipped",
    reading=replace(
        DOCUMENTED.reading,
        directory=timeline_of,
        classify=classify_shipped,
        intents=tuple(SHIPPED_THRESHOLDS),
    ),
    searching=replace(
        DOCUMENTED.searching,
        strategy=strategy_shipped(None, 10),
        finish=default_finish,  # the real program also returns directories, which its callers can open
        filters=dict.fromkeys(RETRIEVERS, "none"),
        ask=strategy_shipped,
    ),
    showing=ResultForms(whole, whole, quoted_shipped, quoted_shipped, rows_shown_shipped),
)
