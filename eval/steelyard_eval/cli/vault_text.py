"""What is printed of a vault, made harmless: what a search found, what it holds, what was indexed."""

from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.base.errors import ConfigError, quote, visible
from steelyard.base.fields import format_time
from steelyard.config import SearchConfig
from steelyard.embedders.embed import indexing_kind
from steelyard.finish import Cut
from steelyard.fusion.layered import LAST
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry, Hit
from steelyard.results import SearchResult
from steelyard.systems.base import scan_result
from steelyard_eval.common.console import cut, fold, table, width, with_colours, wrapped
from steelyard_eval.common.formatting import columns_of

HIT_TEXT_INDENT = 13


def listing(entries: Iterable[Entry]) -> str:
    """Print one line for each entry: day, type, kind, id and title."""
    rows = ((format_time(e.created_at)[:10], e.type, e.kind, e.id, e.title) for e in entries)
    columns = {name: name for name in ("created", "type", "kind", "id", "title")}
    return table([dict(zip(columns, row, strict=True)) for row in rows], columns)


def hits(results: Iterable[Hit], scan: bool = False) -> str:
    """Print a block for each search result: rank, score, id and title; the text; the signals of the score.

    Of a `scan` only size, type and a snippet stand below the title.
    """
    return "\n".join(_hit(hit, scan) for hit in results) or "nothing found"


def _hit(hit: Hit, scan: bool) -> str:
    room = width() - HIT_TEXT_INDENT
    if scan:
        look = scan_result(hit)
        about = f"~{look['tokenEstimate']} tokens" + (f", {visible(look['type'])}" if look["type"] else "")
        below = fold(f"{about}: {visible(look['snippet'])}", room)
    else:
        breakdown = "  ".join(f"{visible(name)} {value:.4f}" for name, value in hit.signals.items() if value)
        lines = fold(visible(" ".join(hit.entry.text.split())), room)
        below = [*lines[:3], cut(" ".join(lines[3:]), room), breakdown]
    score = "     -" if hit.score is None else f"{hit.score:.4f}"
    place = f"{hit.rank:>3}  {score}  {visible(hit.entry.id)}"
    head = f"{with_colours(place)}  {cut(visible(hit.entry.title), width() - columns_of(place) - 2)}".rstrip()
    return "\n".join([head, *(" " * HIT_TEXT_INDENT + line for line in below if line)])


def search_notes(searcher: Searcher, result: SearchResult, intent: str) -> Iterator[str]:
    """Notes on an intent without a strategy, and on a list that is longer than its limit."""
    config = searcher.config
    progress = result.progress
    filters = result.query.filters
    if filters and not result.hits and not searcher.store.count(filters):
        yield f"nothing found: no entry passes the filter: {filters}"
    elif result.emptied:
        yield f"nothing found: {result.emptied}"
    elif progress is not None and progress.answered[0] and progress.step[0] == LAST:
        yield "no abstract reaches any step of the ladder, so all details were searched"
    if intent and intent not in config.intents:
        has = f"only for {', '.join(sorted(config.intents))}" if config.intents else "for no intent at all"
        yield f"{config.name} has another strategy {has}, so the default answered for {quote(intent)}"
    guard = next((stage for stage in config.finish if isinstance(stage, Cut) and stage.all_below), None)
    if guard is not None and len(result.hits) > config.limit:
        yield (
            f"{len(result.hits)} hits, not {config.limit}: {config.name} keeps a list whole when it has fewer "
            f"than {guard.all_below} candidates and the limit would drop more than half of them ({guard})"
        )


def searched_by(weights: str) -> str | None:
    """The embedder of the vectors that a weights file searches; None for one that searches any, or none."""
    models = sorted(SearchConfig.load(weights).models)
    kinds = {indexing_kind(model) for model in models}
    if len(kinds) > 1 or "" in kinds:
        raise ConfigError(f"{weights} needs vectors of {', '.join(map(quote, models))}; name one with --embedder")
    return next(iter(kinds), None)


def measured(index: dict[str, Any]) -> str:
    """An HNSW index in words, and the table of what it finds and how fast."""
    size, recipe = index["bytes"] / 2**20, quote(index["recipe"])
    head = f"HNSW of {index['model']}, {recipe}: {size:.1f} MB; {index['probes']}, lists of {index['list']}"
    rows = [
        {
            "ef_search": "exact" if row["ef_search"] is None else str(row["ef_search"]),
            **{name: f"{value:.3f}" for name, value in row.items() if name.startswith("recall")},
            "p50, ms": f"{row['p50_ms']:.1f}",
            "p95, ms": f"{row['p95_ms']:.1f}",
        }
        for row in index["rows"]
    ]
    return f"{wrapped(head)}\n{table(rows)}".rstrip()


def index_notes(counts: dict[str, Any], dataset: str) -> Iterator[str]:
    """What to know of a run that is not seen in its counts."""
    from steelyard_eval.datasets.groups import duplicates_in_words  # here: a search reads no data set

    if counts["outside"]:
        yield f"entries of the vault that are not in {dataset}: {counts['outside']}; --prune removes them"
    if line := duplicates_in_words(counts["duplicates"]):
        yield line
    for model in counts["stale"]:
        yield f"changed entries have no vectors of {model} now: it could not be opened here; index again with it"


def counts_text(counts: dict[str, object]) -> str:
    """The number of entries, and the counts of a run that are not 0."""
    told = {name: value for name, value in counts.items() if isinstance(value, int) and name != "outside"}
    words = {"embedded": "new vectors"}
    return ", ".join(
        f"{value} {words.get(name, name)}" for name, value in told.items() if value or name != "removed"
    )
