"""An explanation as lines and tables for a terminal; every text in it is escaped."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.base.errors import quote, visible
from steelyard.grammar import number_text
from steelyard_eval.common.configurations import USUAL_LIMIT, short_name
from steelyard_eval.common.console import brief, cut, grid, width, wrapped
from steelyard_eval.common.formatting import columns_of
from steelyard_eval.explain import document
from steelyard_eval.explain.view import too_deep
from steelyard_eval.result.sentences import heading

TITLE = "title"
MIN_TITLE_COLUMNS = 24
MIN_FOLDED_COLUMNS = 16
FACT_GAP = "   "
MAX_SHOWN_MISSING = 12


class TextBlock(NamedTuple):
    """Lines of text, then a table; the first `keys` columns name a row."""

    lines: Sequence[str]
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    keys: int = 2


def text(record: document.ExplanationDocument) -> str:
    """The query, each configuration with what it missed, and the changes; or the entry that was asked for."""
    blocks = [_query(record)]
    if record["entry"] is not None:
        blocks += _entry(record["entry"], record["configurations"])
        return "\n\n".join(map(_text, blocks))
    for about in record["configurations"]:
        blocks += [_listed(about, record["query"]), *_missing(about)]
    if record["changes"] is not None:
        most = max(about["limit"] or USUAL_LIMIT for about in record["configurations"])
        blocks.append(_changes(record["changes"], most))
    return "\n\n".join(map(_text, blocks))


def _text(block: TextBlock) -> str:
    lines = "\n".join(wrapped(line, 4) for line in block.lines)
    if not block.rows:
        return lines
    heads, rows = list(block.heads), [list(map(visible, row)) for row in block.rows]
    titles = [row.pop() for row in rows] if heads[-1] == TITLE else []
    table = _table(heads[: len(rows[0])], rows, block.keys)
    room = width() - max(map(columns_of, table.splitlines())) - 2
    if titles and room >= MIN_TITLE_COLUMNS:
        rows = [[*row, cut(title, room)] for row, title in zip(rows, titles, strict=True)]
        table = _table(heads, rows, block.keys)
    return f"{lines}\n\n{table}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], keys: int) -> str:
    numbers = [all(set(cell) <= set("+-.0123456789x") for cell in column) for column in zip(*rows, strict=True)]
    return grid(list(map(visible, heads)), rows, numbers, most=width(), keys=keys, folded=MIN_FOLDED_COLUMNS)


def _query(record: document.ExplanationDocument) -> TextBlock:
    query, dataset = record["query"], record["dataset"]
    facts = {
        "scope": f"{query['filter'] or 'everything'} ({query['in_scope']} of {dataset['entries']} entries)",
        **{name: query[name] for name in ("clock", "intent", "domain")},
        "intents": record["intents"],
        "tags": ", ".join(query["tags"]),
        "vectors": record["model"] or "none",
        "labelled": f"{query['judged']}, {query['relevant']} relevant",
    }
    name = Path(dataset["path"] or "").name or dataset["name"]
    line = FACT_GAP.join(f"{name}: {value}" for name, value in facts.items() if value)
    legend = [] if record["entry"] else [heading("legend_signals")]
    return TextBlock([f"{name}, query {query['id']}: {query['text']}", line, *legend])


def _listed(about: document.ExplainedView, query: Mapping[str, Any]) -> TextBlock:
    lines, entries = _about(about, query), about["entries"][: (about["limit"] or USUAL_LIMIT)]
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
    # What each signal adds to the score, or its raw value where it has no weight or is the score itself.
    terms = dict.fromkeys((t["signal"], t["weight"]) for entry in entries for t in entry["contributions"])
    names = dict.fromkeys(name for entry in entries for name in entry["signals"])
    names |= dict.fromkeys(name for name, _ in terms)
    short = [short_name(name) for name in names]
    alone = all([entry["score"]] == [own["value"] for own in entry["signals"].values()] for entry in entries)
    weighed = set() if alone else {name for name, weight in terms if weight}
    shown_as = [(name, None) for name in names if name not in weighed]
    for name, weight in [*shown_as, *(term for term in terms if term[0] in weighed)]:
        if name not in silent:
            head = short_name(name) if short.count(short_name(name)) == 1 else name
            head = head if weight is None else f"{number_text(weight)}*{head}"
            columns[head] = [_signal(entry, name, weight, decimals) for entry in entries]
    if any(entry["factor"] for entry in entries):
        columns["factor"] = [f"x{entry['factor']['value']:.4g}" if entry["factor"] else "x1" for entry in entries]
    columns[TITLE] = [entry["headline"] for entry in entries]
    lines += [f"0 for all of these, so without a column: {', '.join(map(short_name, silent))}"] if silent else []
    return TextBlock(lines, list(columns), list(zip(*columns.values(), strict=True)))


def _silent(entries: Sequence[document.ListedEntry]) -> list[str]:
    """The signals that are 0, or not there, for all of several entries, and add 0 to their scores."""
    names = dict.fromkeys(name for entry in entries for name in entry["signals"])
    heard = {term["signal"] for entry in entries for term in entry["contributions"] if term["contribution"]}
    heard |= {name for entry in entries for name, signal in entry["signals"].items() if signal["value"]}
    return [name for name in names if len(entries) > 1 and name not in heard]


def _signal(entry: document.ListedEntry, name: str, weight: float | None, decimals: int) -> str:
    """What the terms of this weight add together, else the raw value, with the place in the retriever's list."""
    raw = entry["signals"].get(name)
    place = f" #{raw['position']}" if raw and raw["position"] else ""
    absent = raw is not None and raw["value"] is None
    if weight is None:
        return "-" if raw is None or raw["value"] is None else f"{raw['value']:.4f}{place}"
    own = [t["contribution"] for t in entry["contributions"] if (t["signal"], t["weight"]) == (name, weight)]
    return "-" if not own or (absent and not sum(own)) else f"{sum(own):.{decimals}f}{place}"


def _name(about: document.ExplainedView) -> str:
    name = about["label"] if about["role"] == "only" else f"{about['role']}: {about['label']}"
    strategy = brief(about["strategy"])
    return name if strategy == about["label"] else f"{name}{FACT_GAP}{strategy}"


def _about(about: document.ExplainedView, query: Mapping[str, Any]) -> list[str]:
    values = FACT_GAP.join(f"{metric} {value:.4f}" for metric, value in (about["metrics"] or {}).items())
    depths = ", ".join(f"{name} {depth or 'all'}" for name, depth in about["depths"].items())
    extent = f"{len(about['entries'])} listed of {about['ranked']} entries that have a score"
    facts = [
        values or "no labels, no metrics",
        extent if about["ranked"] else "nothing found",
        "lists only, no signals" if about["system"] is None else f"depth: {depths}",
        *_unsearched_retrievers(about),
    ]
    scoring = [stage for stage in about["finish"] if stage.startswith(("rerank(", "rescore("))]
    read, sure = [], about.get("confidence")
    if about["intent"] and (about["intent"] != query["intent"] or sure is not None):
        read.append(f"classified intent: {about['intent']}" + ("" if sure is None else f", confidence {sure:.2f}"))
    if about["matched"] not in ("", query["text"]):
        read.append(f"searched keywords: {quote(about['matched'])}")
    lines = [
        _name(about),
        FACT_GAP.join(facts),
        *(f"sorted again by {cut(brief(stage), 80)}" for stage in scoring),
        f"nothing found: {about['emptied']}" if about.get("emptied") else "",
        FACT_GAP.join(read),
    ]
    return [line for line in lines if line]


def _unsearched_retrievers(about: document.ExplainedView) -> list[str]:
    skipped = about["skipped_retrievers"]
    return [f"not searched, as enough was found: {', '.join(skipped)}"] if skipped else []


def _missing(about: document.ExplainedView) -> Iterator[TextBlock]:
    if not (missing := about["missing"]):
        return
    first = missing[:MAX_SHOWN_MISSING]
    aged = heading("only_for_age", {"count": sum("as_new" in one for one in missing) or None})
    told = f"relevant, not in the list: {len(missing)}{aged}{_left_out(len(missing), MAX_SHOWN_MISSING)}"
    hint = f"--entry {shlex.quote(missing[0]['id'])}: what its score consists of, or why it has none"
    rows = [(one["id"], _whole(one["grade"]), one["why"], one["headline"]) for one in first]
    yield TextBlock([told, *_not_read(about, first), hint], ["entry", "grade", "where", TITLE], rows, 1)


def _not_read(about: document.ExplainedView, places: Sequence[document.PlaceRecord]) -> list[str]:
    """Why places in lists do not count, and lists without any, which need not be said of each place."""
    lists = [each for row in places for each in row["lists"].items()]
    depths = {name: listed["depth"] for name, listed in lists if too_deep(**listed)}
    deep = ", ".join(f"{name} is read only to place {depth}" for name, depth in depths.items())
    line = FACT_GAP.join(filter(None, (deep, *_unsearched_retrievers(about))))
    return [line] if line else []


def _changes(changes: Sequence[document.ChangeRecord], most: int) -> TextBlock:
    relevant = [c for c in changes if (c["grade"] or 0) >= 1 and c["kind"] != "stayed"]
    rows = [
        (_whole(c["before"]), _whole(c["after"]), c["id"], _whole(c["grade"]), _cause(c))
        for c in [*relevant, *(c for c in changes if c not in relevant)]
    ]
    summary = ", ".join(
        f"{sum(c['kind'] == kind for c in changes)} {kind}" for kind in ("stayed", "moved", "entered", "left")
    )
    lines = [f"changes: {summary}{_left_out(len(rows), most)}", *([heading("legend_changes")] if changes else [])]
    return TextBlock(lines, ["before", "after", "entry", "grade", heading("cause")], rows[:most], 3)


def _left_out(count: int, most: int) -> str:
    return f"; {count - most} more in the JSON document" if count > most else ""


def _cause(change: document.ChangeRecord) -> str:
    """The signal that moved it, or where it was or is now."""
    by, why = change["by"] and short_name(change["by"]), change["why"]
    if change["kind"] == "stayed" or (by and change["by"] in change["changes"]):
        return by or ""
    if by is None and change["standing"]:
        return "others moved"
    side = "before" if change["kind"] == "entered" else "after"
    return "; ".join(filter(None, (by, f"{side}: {why}" if why else "")))


def _entry(
    entry: document.RequestedEntry, configurations: Sequence[document.ExplainedView]
) -> Iterator[TextBlock]:
    yield TextBlock([f"entry {entry['id']}, grade {_whole(entry['grade'])}: {entry['headline']}"])
    for about, own in zip(configurations, entry["configurations"], strict=True):
        tree = _tree(own["explanation"]) if own["explanation"] else []
        words = [
            f"words of the query that {name} finds in it: {', '.join(map(quote, held)) or 'none'}"
            for name, held in own["matching"].items()
            if held or own["lists"][name]["position"] or own["rank"]  # else the line above says that it finds none
        ]
        yield TextBlock([_name(about), own["why"], *_not_read(about, [own]), *words, *tree])
    yield TextBlock(["without --entry: the lists and the other entries"])


def _tree(node: document.ScoreTree, depth: int = 0) -> Iterator[str]:
    value = "-" if node["value"] is None else f"{node['value']:.6g}"
    yield f"{'  ' * depth}{value}  {node['text']}"
    for part in node.get("parts", ()):
        yield from _tree(part, depth + 1)


def _whole(number: int | None) -> str:
    return "-" if number is None else str(number)
