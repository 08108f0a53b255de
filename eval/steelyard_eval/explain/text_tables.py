"""Splits an explanation into headed tables of text cells, for a terminal or a notebook."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from steelyard.base.errors import shown
from steelyard.grammar import number_text
from steelyard_eval.common.configurations import LIMIT, short_name
from steelyard_eval.common.console import brief
from steelyard_eval.explain.document import (
    ChangeRecord,
    ExplainedQuery,
    ExplainedView,
    ExplanationDocument,
    FactorRecord,
    ListedEntry,
    PlaceRecord,
    RawSignal,
    RequestedEntry,
    ScoreTree,
)
from steelyard_eval.explain.places import too_deep

WIDEST_HEAD = 18
TITLE = "title"
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
OTHERS = " lifts others"
LACKING = f'"{OTHERS.strip()}": others have this signal, and the entry has not'
REST = "without --entry: the lists and the other entries"
LONGEST_STAGE = 80
MOST_MISSING = 12
"""The number of missing entries that are shown; the JSON document has all of them."""


@dataclass(frozen=True)
class TextTable:
    """Lines of text, then a table: `heads` and `rows`; the first `keys` columns name the row.

    The column of titles is the last, and the first to go where the room is scarce; `single`: a row is one line.
    """

    lines: Sequence[str]
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    keys: int = 2
    single: bool = False


def blocks(record: ExplanationDocument) -> list[TextTable]:
    """List the blocks: the query, each configuration with what it missed, the changes; or the entry asked for."""
    tables = [_query(record)]
    if record["entry"] is not None:
        return [*tables, *_entry(record["entry"], record["configurations"])]
    for about in record["configurations"]:
        tables += [_listed(about, record["query"]), *_missing(about)]
    if record["changes"] is not None:
        tables.append(_changes(record["changes"], record["configurations"]))
    return tables


def _query(record: ExplanationDocument) -> TextTable:
    query, dataset = record["query"], record["dataset"]
    scope = query["filter"] or "everything"
    facts = {
        "scope": f"{scope} ({query['in_scope']} of {dataset['entries']} entries)",
        "clock": query["clock"],
        **{name: query[name] for name in ("intent", "domain")},
        "intents": record["intents"],
        "tags": ", ".join(query["tags"]),
        "vectors": record["model"] or "none",
        "judged": f"{query['judged']}, {query['relevant']} relevant",
    }
    line = PARTED.join(f"{name}: {value}" for name, value in facts.items() if value)
    legend = [COLUMNS] if record["configurations"][0]["entries"] and record["entry"] is None else []
    return TextTable(
        [
            f"{Path(dataset['path'] or '').name or dataset['name']}, query {query['id']}: {query['text']}",
            line,
            *legend,
        ]
    )


def _listed(about: ExplainedView, query: ExplainedQuery) -> TextTable:
    """The list: rank, entry, grade, score, what each signal adds to it, factor, title."""
    entries = about["entries"][: _most(about)]
    columns: dict[str, list[str]] = {
        "rank": [str(entry["rank"]) for entry in entries],
        "entry": [entry["id"] for entry in entries],
        "grade": [_grade(entry["grade"]) for entry in entries],
        "score": _numbers([entry["score"] for entry in entries], _decimals(entries)),
    }
    columns |= _finished(entries)
    silent = _silent(entries)
    legend = _add_signals(columns, [_without(entry, silent) for entry in entries])
    columns |= _factors(entries)
    columns[TITLE] = [entry["headline"] for entry in entries]
    lines = [*_about(about), *_read(about, query), *legend]
    lines += [f"no column, as 0 for all of these: {', '.join(map(short_name, silent))}"] if silent else []
    if not entries:
        return TextTable([*lines, "nothing was returned"])
    return TextTable(lines, list(columns), list(zip(*columns.values(), strict=True)), single=True)


def _most(about: ExplainedView) -> int:
    """Rows that are shown of a list that goes on beyond its limit, as some systems' do."""
    return about.get("limit") or LIMIT


def _silent(entries: Sequence[ListedEntry]) -> list[str]:
    """The signals that are 0, or not there, for all of several entries, and add 0 to their scores."""
    names = dict.fromkeys(name for entry in entries for name in entry["signals"])
    added = {term["signal"] for entry in entries for term in entry["contributions"] if term["contribution"]}
    told = {name for entry in entries for name, signal in entry["signals"].items() if signal["value"]}
    return [name for name in names if len(entries) > 1 and name not in added | told]


def _without(entry: ListedEntry, silent: Sequence[str]) -> ListedEntry:
    signals = {name: value for name, value in entry["signals"].items() if name not in silent}
    terms = [term for term in entry["contributions"] if term["signal"] not in silent]
    return {**entry, "signals": signals, "contributions": terms}


def _finished(entries: Sequence[ListedEntry]) -> dict[str, list[str]]:
    """The fused score, where a finish stage gave another, and what a re-ranker's consists of."""
    scored = [entry for entry in entries if "finished" in entry]
    if not scored:
        return {}
    fused = [entry.get("fused", entry["score"]) for entry in entries]
    columns = {"fused": _numbers(fused, 6)}
    products = [entry["finished"] for entry in scored if entry["finished"].get("combine") == "product"]
    names = dict.fromkeys(part["text"] for product in products for part in product["parts"])
    for name in names:
        columns[name] = _numbers([_part(entry, name) for entry in entries], 4)
    return columns


def _part(entry: ListedEntry, name: str) -> float | None:
    parts = entry.get("finished", {}).get("parts", [])
    return next((part["value"] for part in parts if part["text"] == name), None)


def _factors(entries: Sequence[ListedEntry]) -> dict[str, list[str]]:
    """What scores were multiplied by, and each part of it that multiplies any of them."""
    factors = [entry["factor"] or FactorRecord(value=1.0, formula="", parts={}) for entry in entries]
    if not any(entry["factor"] for entry in entries):
        return {}
    columns = {"factor": [_times(factor["value"]) for factor in factors]}
    names = dict.fromkeys(name for factor in factors for name, value in factor["parts"].items() if value != 1.0)
    for name in names:
        columns[f"x {name}"] = [_times(factor["parts"].get(name, 1.0)) for factor in factors]
    return columns


def _times(value: float) -> str:
    return f"x{value:.4g}"


def _add_signals(columns: dict[str, list[str]], entries: Sequence[ListedEntry]) -> list[str]:
    """Add what each signal adds to the score, or its raw value where that is all; returns long headings."""
    terms = dict.fromkeys((t["weight"], t["signal"]) for entry in entries for t in entry["contributions"])
    signals = dict.fromkeys(name for entry in entries for name in entry["signals"])
    heads = _headings([*signals, *(signal for _, signal in terms)])
    mentioned = {signal for _, signal in terms}
    for name in [name for name in signals if name not in mentioned]:
        columns[heads[name]] = [_raw(entry["signals"][name]) for entry in entries]
    legend: list[str] = []
    for weight, signal in terms:
        if not weight or _is_the_score(entries):
            columns[heads[signal]] = [_raw(entry["signals"].get(signal)) for entry in entries]
            continue
        head = f"{number_text(weight)}*{heads[signal]}"
        if len(head) > WIDEST_HEAD:
            legend.append(f"[{len(legend) + 1}] = {head}")
            head = f"[{len(legend)}]"
        columns[head] = [_added(entry, weight, signal, _decimals(entries)) for entry in entries]
    return legend


def _headings(signals: Iterable[str]) -> dict[str, str]:
    """Short names, but whole ones where two signals have the same: recency of two half-lives."""
    short = {signal: short_name(signal) for signal in signals}
    names = list(short.values())
    return {signal: name if names.count(name) == 1 else signal for signal, name in short.items()}


def _is_the_score(entries: Sequence[ListedEntry]) -> bool:
    """Whether every score is one raw value; its contribution would stand there a third time."""
    return all([entry["score"]] == [signal["value"] for signal in entry["signals"].values()] for entry in entries)


def _added(entry: ListedEntry, weight: float, signal: str, decimals: int) -> str:
    """What the terms written so add together, with the place in the retriever's list; "-" without the signal."""
    added = [t["contribution"] for t in entry["contributions"] if (t["weight"], t["signal"]) == (weight, signal)]
    raw = entry["signals"].get(signal)
    if not added or (raw and raw["value"] is None and not sum(added)):
        return "-"
    return f"{sum(added):.{decimals}f}{_position(raw)}"


def _about(about: ExplainedView) -> list[str]:
    role = "" if about["role"] == "only" else f"{about['role']}: "
    metrics = about["metrics"] or {}
    values = PARTED.join(f"{name} {value:.4f}" for name, value in metrics.items()) or "no judgments, no metrics"
    depths = ", ".join(f"{name} {depth or 'all'}" for name, depth in about["depths"].items())
    extent = "lists only, no signals" if about["system"] is None else f"depth: {depths}"
    strategy = brief(about["strategy"])
    lines = [
        f"{role}{about['label']}" + (f"   {strategy}" if strategy != about["label"] else ""),
        PARTED.join([values, _extent(about), extent, *_unasked(about)]),
    ]
    scoring = [stage for stage in about["finish"] if stage.startswith(("rerank(", "rescore("))]
    lines += [f"sorted again by {_start(brief(stage))}" for stage in scoring]
    return [*lines, f"nothing found: {about['emptied']}"] if about.get("emptied") else lines


def _unasked(about: ExplainedView) -> list[str]:
    """The retrievers that were not searched, such as vectors where keywords had found enough."""
    unasked = about["unasked"]
    return [f"not searched, as enough was found: {', '.join(unasked)}"] if unasked else []


def _extent(about: ExplainedView) -> str:
    """How many entries the list has, of how many that have a score."""
    listed = len(about["entries"])
    if not about["ranked"]:
        return "nothing found"
    first = f", the first {_most(about)} here" if listed > _most(about) else ""
    return f"shows {listed} of the {about['ranked']} entries that have a score{first}"


def _start(stage: str) -> str:
    """The start of a long stage; the JSON document has it whole."""
    return stage if len(stage) <= LONGEST_STAGE else stage[:LONGEST_STAGE] + " ..."


def _read(about: ExplainedView, query: ExplainedQuery) -> list[str]:
    """What the system made of the query: an intent where it has none, and another text for keywords."""
    told = []
    sure = about.get("confidence")
    if about["intent"] and (about["intent"] != query["intent"] or sure is not None):
        told.append(f"classified as {about['intent']}" + ("" if sure is None else f", confidence {sure:.2f}"))
    if about["matched"] not in ("", query["text"]):
        told.append(f"keywords match {shown(about['matched'])}")
    return [PARTED.join(told)] if told else []


def _missing(about: ExplainedView) -> list[TextTable]:
    missing = about["missing"]
    if not missing:
        return []
    more = _left_out(len(missing), MOST_MISSING)
    rows = [(m["id"], _grade(m["grade"]), m["why"], m["headline"]) for m in missing[:MOST_MISSING]]
    told = f"relevant, not in the list: {len(missing)}{more}"
    hint = f"--entry {shlex.quote(missing[0]['id'])}: what its score consists of, or why it has none"
    below = _not_read(about, missing[:MOST_MISSING])
    return [
        TextTable([told, hint], ["entry", "grade", "where", TITLE], rows, 1),
        *([TextTable(below)] if below else []),
    ]


def _not_read(about: ExplainedView, places: Sequence[PlaceRecord]) -> list[str]:
    """Why places in lists do not count, and lists without any, which need not be said of each place."""
    lists = [each for row in places for each in row["lists"].items()]
    depths = {name: listed["depth"] for name, listed in lists if too_deep(**listed)}
    deep = ", ".join(f"{name} is read only to place {depth}" for name, depth in depths.items())
    line = PARTED.join(filter(None, (deep, *_unasked(about))))
    return [line] if line else []


def _changes(changes: Sequence[ChangeRecord], configurations: Sequence[ExplainedView]) -> TextTable:
    most = max(map(_most, configurations))
    having: dict[str, set[str]] = {}
    for entry in chain.from_iterable(about["entries"] for about in configurations):
        for term in entry["contributions"]:
            if term["contribution"]:
                having.setdefault(short_name(term["signal"]), set()).add(entry["id"])
    relevant = [c for c in changes if (c["grade"] or 0) >= 1 and c["kind"] != "stayed"]
    rows = [
        (_rank(c["before"]), _rank(c["after"]), c["id"], _grade(c["grade"]), _cause(c, having))
        for c in [*relevant, *(c for c in changes if c not in relevant)]
    ]
    counts = {kind: sum(c["kind"] == kind for c in changes) for kind in _KINDS}
    summary = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    first = "; relevant ones first" if relevant else ""
    lines = [f"changes: {summary}{first}{_left_out(len(rows), most)}", *([STANDING] if changes else [])]
    lines += [LACKING] if any(OTHERS in row[-1] for row in rows[:most]) else []
    return TextTable(lines, ["before", "after", "entry", "grade", CAUSE], rows[:most], 3)


def _left_out(count: int, most: int) -> str:
    return f"; {count - most} more in the JSON document" if count > most else ""


_KINDS = ("stayed", "moved", "entered", "left")


def _cause(change: ChangeRecord, having: Mapping[str, set[str]]) -> str:
    """The signal, also where others have it and this entry has not, and where the entry was or is now."""
    by, why = change["by"], change["why"]
    if by is not None and by in change["changes"]:
        less = " less" if (change["after"] or 0) < (change["before"] or 0) else ""
        return short_name(by) + ("" if change["id"] in having.get(by, {change["id"]}) else f"{OTHERS}{less}")
    if change["kind"] == "stayed":
        return ""
    if by is None and change["standing"]:
        return "others moved"
    where = f"{'before' if change['kind'] == 'entered' else 'after'}: {why}" if why else ""
    return "; ".join(filter(None, (by and short_name(by), where)))


def _entry(entry: RequestedEntry, configurations: Sequence[ExplainedView]) -> list[TextTable]:
    tables = [TextTable([f"entry {entry['id']}, grade {_grade(entry['grade'])}: {entry['headline']}"])]
    for about, own in zip(configurations, entry["configurations"], strict=True):
        tree = list(_tree(own["explanation"])) if own["explanation"] else []
        words = [
            f"words of the query that {name} finds in it: {', '.join(map(shown, held)) or 'none'}"
            for name, held in own["matching"].items()
            if held or own["lists"][name]["position"] or own["rank"]  # else the line above says that it finds none
        ]
        tables.append(TextTable([_about(about)[0], own["why"], *_not_read(about, [own]), *words, *tree]))
    return [*tables, TextTable([REST])]


def _tree(node: ScoreTree, depth: int = 0) -> Iterable[str]:
    value = "-" if node["value"] is None else f"{node['value']:.6g}"
    yield f"{'  ' * depth}{value}  {node['text']}"
    for part in node.get("parts", ()):
        yield from _tree(part, depth + 1)


def _decimals(entries: Sequence[ListedEntry]) -> int:
    """How many the scores need: those of RRF are a few hundredths."""
    return 4 if max((abs(entry["score"]) for entry in entries), default=1.0) >= 0.1 else 6


def _numbers(values: Sequence[float | None], decimals: int) -> list[str]:
    return ["-" if value is None else f"{value:.{decimals}f}" for value in values]


def _raw(signal: RawSignal | None) -> str:
    return "-" if signal is None or signal["value"] is None else f"{signal['value']:.4f}{_position(signal)}"


def _position(signal: RawSignal | None) -> str:
    return f" #{signal['position']}" if signal and signal["position"] else ""


def _grade(grade: int | None) -> str:
    return "-" if grade is None else str(grade)


def _rank(rank: int | None) -> str:
    return "-" if rank is None else str(rank)
