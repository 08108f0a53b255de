"""An explanation as lines and tables, for a terminal and for a notebook; every text in it is escaped."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from steelyard.base.errors import shown, visible
from steelyard.grammar import number_text
from steelyard_eval.common.configurations import LIMIT, short_name
from steelyard_eval.common.console import brief, cut, table, width, wrapped
from steelyard_eval.explain.document import (
    ChangeRecord,
    ExplainedQuery,
    ExplainedView,
    ExplanationDocument,
    ListedEntry,
    PlaceRecord,
    RawSignal,
    RequestedEntry,
    ScoreTree,
)
from steelyard_eval.explain.places import too_deep

TITLE = "title"
SHORTEST_TITLE = 24
"""Titles are cut to the room that is left, and left out where that is less."""
FOLDED = 16
"""Columns of text are folded to no less than this."""
PARTED = "   "
"""Between the facts of a line."""
CAUSE = "because of"
COLUMNS = (
    "columns: of a signal with a weight, what it adds to the score; without one, its own value; #1: first in its "
    "list; -: not in its list"
)
STANDING = (
    f"{CAUSE}: the signal that moved it most against the entries that it passed, or that passed it; of an entry "
    "without a score before, the one that adds most to its score now"
)
REST = "without --entry: the lists and the other entries"
MOST_MISSING = 12
"""Missing entries that are shown; the JSON document has all of them."""


class TextBlock(NamedTuple):
    """Lines of text, then a table; the first `keys` columns name a row."""

    lines: Sequence[str]
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    keys: int = 2


def text(record: ExplanationDocument) -> str:
    """Print the explanation for a terminal."""
    return "\n\n".join(_text(block) for block in blocks(record))


def html(record: ExplanationDocument) -> str:
    """Print the same for a notebook."""
    return f"<pre>{escape(text(record))}</pre>"


def _text(block: TextBlock) -> str:
    lines = "\n".join(wrapped(line, 4) for line in block.lines)
    if not block.rows:
        return lines
    columns = {head: list(cells) for head, *cells in zip(block.heads, *block.rows, strict=True)}
    columns = {head: _aligned(head, cells) for head, cells in columns.items()}
    titles = columns.pop(TITLE, None)
    if titles:
        bare = _table(columns, block.keys)
        room = width() - max(map(len, bare.splitlines())) - 2
        if room >= SHORTEST_TITLE:
            columns[TITLE] = [cut(visible(title), room) for title in titles]
    return f"{lines}\n\n{_table(columns, block.keys)}"


def _aligned(head: str, cells: Sequence[str]) -> list[str]:
    """Cells of a column; numbers stand on the right."""
    widest = max(map(len, (head, *cells)))
    return [cell.rjust(widest) if set(cell) <= set("+-.0123456789x") else cell for cell in cells]


def _table(columns: dict[str, list[str]], keys: int) -> str:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return table(rows, None, width(), keys, FOLDED)


def blocks(record: ExplanationDocument) -> list[TextBlock]:
    """The query, each configuration with what it missed, and the changes; or the entry that was asked for."""
    made = [_query(record)]
    if record["entry"] is not None:
        return [*made, *_entry(record["entry"], record["configurations"])]
    for about in record["configurations"]:
        made += [_listed(about, record["query"]), *_missing(about)]
    if record["changes"] is not None:
        made.append(
            _changes(record["changes"], max(about["limit"] or LIMIT for about in record["configurations"]))
        )
    return made


def _query(record: ExplanationDocument) -> TextBlock:
    query, dataset = record["query"], record["dataset"]
    facts = {
        "scope": f"{query['filter'] or 'everything'} ({query['in_scope']} of {dataset['entries']} entries)",
        "clock": query["clock"],
        "intent": query["intent"],
        "domain": query["domain"],
        "intents": record["intents"],
        "tags": ", ".join(query["tags"]),
        "vectors": record["model"] or "none",
        "judged": f"{query['judged']}, {query['relevant']} relevant",
    }
    name = Path(dataset["path"] or "").name or dataset["name"]
    line = PARTED.join(f"{name}: {value}" for name, value in facts.items() if value)
    return TextBlock(
        [f"{name}, query {query['id']}: {query['text']}", line, *([] if record["entry"] else [COLUMNS])]
    )


def _listed(about: ExplainedView, query: ExplainedQuery) -> TextBlock:
    """The list: rank, entry, grade, score, what each signal adds to it, factor, title."""
    lines = [*_about(about), *_read(about, query)]
    entries = about["entries"][: (about["limit"] or LIMIT)]
    if not entries:
        return TextBlock([*lines, "nothing was returned"])
    decimals = 4 if max(abs(entry["score"]) for entry in entries) >= 0.1 else 6  # of RRF a few hundredths
    columns: dict[str, list[str]] = {
        "rank": [str(entry["rank"]) for entry in entries],
        "entry": [entry["id"] for entry in entries],
        "grade": [_whole(entry["grade"]) for entry in entries],
        "score": [f"{entry['score']:.{decimals}f}" for entry in entries],
    }
    if any("finished" in entry for entry in entries):
        columns["fused"] = [f"{entry.get('fused') or entry['score']:.6f}" for entry in entries]
    silent = _silent(entries)
    columns |= _signals(entries, silent, decimals)
    if any(entry["factor"] for entry in entries):
        columns["factor"] = [f"x{entry['factor']['value']:.4g}" if entry["factor"] else "x1" for entry in entries]
    columns[TITLE] = [entry["headline"] for entry in entries]
    lines += [f"no column, as 0 for all of these: {', '.join(map(short_name, silent))}"] if silent else []
    return TextBlock(lines, list(columns), list(zip(*columns.values(), strict=True)))


def _silent(entries: Sequence[ListedEntry]) -> list[str]:
    """The signals that are 0, or not there, for all of several entries, and add 0 to their scores."""
    names = dict.fromkeys(name for entry in entries for name in entry["signals"])
    heard = {term["signal"] for entry in entries for term in entry["contributions"] if term["contribution"]}
    heard |= {name for entry in entries for name, signal in entry["signals"].items() if signal["value"]}
    return [name for name in names if len(entries) > 1 and name not in heard]


def _signals(entries: Sequence[ListedEntry], silent: Sequence[str], decimals: int) -> dict[str, list[str]]:
    """What each signal adds to the score, or its raw value where it has no weight or is the score itself."""
    terms = dict.fromkeys((t["signal"], t["weight"]) for entry in entries for t in entry["contributions"])
    names = dict.fromkeys(
        [*(name for entry in entries for name in entry["signals"]), *(name for name, _ in terms)]
    )
    short = {name: short_name(name) for name in names}
    heads = {name: own if [*short.values()].count(own) == 1 else name for name, own in short.items()}
    alone = all([entry["score"]] == [own["value"] for own in entry["signals"].values()] for entry in entries)
    weighed = {} if alone else {name: weight for name, weight in terms if weight}
    columns = {
        heads[name]: [_raw(entry["signals"].get(name)) for entry in entries]
        for name in names
        if name not in weighed and name not in silent
    }
    for name, weight in terms:
        if name in weighed and name not in silent:
            head = f"{number_text(weight)}*{heads[name]}"
            columns[head] = [_added(entry, name, weight, decimals) for entry in entries]
    return columns


def _added(entry: ListedEntry, name: str, weight: float, decimals: int) -> str:
    """What the terms written so add together, with the place in the retriever's list; "-" without the signal."""
    own = [t["contribution"] for t in entry["contributions"] if (t["signal"], t["weight"]) == (name, weight)]
    raw = entry["signals"].get(name)
    if not own or (raw and raw["value"] is None and not sum(own)):
        return "-"
    return f"{sum(own):.{decimals}f}{_position(raw)}"


def _raw(signal: RawSignal | None) -> str:
    return "-" if signal is None or signal["value"] is None else f"{signal['value']:.4f}{_position(signal)}"


def _position(signal: RawSignal | None) -> str:
    return f" #{signal['position']}" if signal and signal["position"] else ""


def _about(about: ExplainedView) -> list[str]:
    strategy = brief(about["strategy"])
    name = about["label"] if about["role"] == "only" else f"{about['role']}: {about['label']}"
    values = PARTED.join(f"{metric} {value:.4f}" for metric, value in (about["metrics"] or {}).items())
    depths = ", ".join(f"{name} {depth or 'all'}" for name, depth in about["depths"].items())
    extent = f"{len(about['entries'])} listed of {about['ranked']} entries that have a score"
    facts = [
        values or "no judgments, no metrics",
        extent if about["ranked"] else "nothing found",
        "lists only, no signals" if about["system"] is None else f"depth: {depths}",
        *_unasked(about),
    ]
    lines = [name if strategy == about["label"] else f"{name}{PARTED}{strategy}", PARTED.join(facts)]
    scoring = [stage for stage in about["finish"] if stage.startswith(("rerank(", "rescore("))]
    lines += [f"sorted again by {cut(brief(stage), 80)}" for stage in scoring]
    return [*lines, f"nothing found: {about['emptied']}"] if about.get("emptied") else lines


def _unasked(about: ExplainedView) -> list[str]:
    """The retrievers that were not searched, such as vectors where keywords had found enough."""
    return [f"not searched, as enough was found: {', '.join(about['unasked'])}"] if about["unasked"] else []


def _read(about: ExplainedView, query: ExplainedQuery) -> list[str]:
    """What the system made of the query: an intent where it has none, and another text for keywords."""
    told, sure = [], about.get("confidence")
    if about["intent"] and (about["intent"] != query["intent"] or sure is not None):
        told.append(f"classified as {about['intent']}" + ("" if sure is None else f", confidence {sure:.2f}"))
    if about["matched"] not in ("", query["text"]):
        told.append(f"keywords match {shown(about['matched'])}")
    return [PARTED.join(told)] if told else []


def _missing(about: ExplainedView) -> Iterator[TextBlock]:
    """The relevant entries that are not in the list."""
    if not (missing := about["missing"]):
        return
    first = missing[:MOST_MISSING]
    told = f"relevant, not in the list: {len(missing)}{_left_out(len(missing), MOST_MISSING)}"
    hint = f"--entry {shlex.quote(missing[0]['id'])}: what its score consists of, or why it has none"
    rows = [(one["id"], _whole(one["grade"]), one["why"], one["headline"]) for one in first]
    yield TextBlock([told, *_not_read(about, first), hint], ["entry", "grade", "where", TITLE], rows, 1)


def _not_read(about: ExplainedView, places: Sequence[PlaceRecord]) -> list[str]:
    """Why places in lists do not count, and lists without any, which need not be said of each place."""
    lists = [each for row in places for each in row["lists"].items()]
    depths = {name: listed["depth"] for name, listed in lists if too_deep(**listed)}
    deep = ", ".join(f"{name} is read only to place {depth}" for name, depth in depths.items())
    line = PARTED.join(filter(None, (deep, *_unasked(about))))
    return [line] if line else []


def _changes(changes: Sequence[ChangeRecord], most: int) -> TextBlock:
    """What moved, relevant entries first."""
    relevant = [c for c in changes if (c["grade"] or 0) >= 1 and c["kind"] != "stayed"]
    rows = [
        (_whole(c["before"]), _whole(c["after"]), c["id"], _whole(c["grade"]), _cause(c))
        for c in [*relevant, *(c for c in changes if c not in relevant)]
    ]
    summary = ", ".join(
        f"{sum(c['kind'] == kind for c in changes)} {kind}" for kind in ("stayed", "moved", "entered", "left")
    )
    lines = [f"changes: {summary}{_left_out(len(rows), most)}", *([STANDING] if changes else [])]
    return TextBlock(lines, ["before", "after", "entry", "grade", CAUSE], rows[:most], 3)


def _left_out(count: int, most: int) -> str:
    return f"; {count - most} more in the JSON document" if count > most else ""


def _cause(change: ChangeRecord) -> str:
    """The signal that moved it, or where it was or is now."""
    by, why = change["by"], change["why"]
    if by is not None and by in change["changes"]:
        return short_name(by)
    if change["kind"] == "stayed":
        return ""
    if by is None and change["standing"]:
        return "others moved"
    where = f"{'before' if change['kind'] == 'entered' else 'after'}: {why}" if why else ""
    return "; ".join(filter(None, (by and short_name(by), where)))


def _entry(entry: RequestedEntry, configurations: Sequence[ExplainedView]) -> Iterator[TextBlock]:
    yield TextBlock([f"entry {entry['id']}, grade {_whole(entry['grade'])}: {entry['headline']}"])
    for about, own in zip(configurations, entry["configurations"], strict=True):
        tree = list(_tree(own["explanation"])) if own["explanation"] else []
        words = [
            f"words of the query that {name} finds in it: {', '.join(map(shown, held)) or 'none'}"
            for name, held in own["matching"].items()
            if held or own["lists"][name]["position"] or own["rank"]  # else the line above says that it finds none
        ]
        yield TextBlock([_about(about)[0], own["why"], *_not_read(about, [own]), *words, *tree])
    yield TextBlock([REST])


def _tree(node: ScoreTree, depth: int = 0) -> Iterable[str]:
    value = "-" if node["value"] is None else f"{node['value']:.6g}"
    yield f"{'  ' * depth}{value}  {node['text']}"
    for part in node.get("parts", ()):
        yield from _tree(part, depth + 1)


def _whole(number: int | None) -> str:
    return "-" if number is None else str(number)
