"""Results as text for a terminal. Everything shown is made harmless first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from steelyard.entry import Entry, Hit
from steelyard.errors import visible
from steelyard.fields import format_time


def table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> str:
    """Aligned columns: `columns` maps a key of the rows to its heading. Numbers stand right."""
    cells = [[_cell(row.get(key)) for key in columns] for row in rows]
    heads = list(columns.values())
    widths = [max(len(head), *(len(line[at]) for line in cells), 0) for at, head in enumerate(heads)]
    right = [all(_is_number(row.get(key)) for row in rows) and bool(rows) for key in columns]
    lines = [_line(heads, widths, right), _line(["-" * width for width in widths], widths, right)]
    return "\n".join(lines + [_line(line, widths, right) for line in cells])


def comparison(record: Mapping[str, Any], metrics: Sequence[str] = ("nDCG@10", "R@10")) -> str:
    """The rows of a comparison: label, family, metrics with intervals, verdict, latency, cost."""
    values = {(row["label"], row["metric"]): row for row in record["results"]}
    verdicts = {row["challenger"]: row["verdict"] for row in record["comparisons"]}
    timing = {row["label"]: row for row in record["timing"]}
    present = [m for m in metrics if any(metric == m for _, metric in values)] or [record["primary"]]
    rows = []
    for configuration in record["configurations"]:
        label = configuration["label"]
        took = timing.get(label, {})
        row = {"label": label, "family": configuration["family"], "verdict": verdicts.get(label, "baseline")}
        row |= {metric: _interval(values[label, metric]) for metric in present}
        row |= {"p50": took.get("p50_ms"), "calls": took.get("embedding_calls")}
        rows.append(row)
    columns = {"label": "", "family": "family", **{m: f"{m} [95%]" for m in present}}
    columns |= {
        "verdict": f"{record['primary']} against {record['baseline']}",
        "p50": "p50 ms",
        "calls": "embeddings",
    }
    return table(rows, columns)


def tests(record: Mapping[str, Any]) -> str:
    """The paired comparisons: what was found, how sure it is, and what these queries could have found."""
    rows = [
        {
            **row,
            "delta": f"{row['delta']:+.4f} [{row['low']:+.4f}, {row['high']:+.4f}]",
            "p": f"{row['p']:.4f}",
            "p_holm": f"{row['p_holm']:.4f}",
            "wtl": f"{row['wins']}/{row['ties']}/{row['losses']}",
            "mde": "-" if row["mde"] is None else f"{row['mde']:.4f}",
        }
        for row in record["comparisons"]
    ]
    columns = {"challenger": f"against {record['baseline']}", "delta": f"{record['primary']} difference [95%]"}
    columns |= {
        "p": "p",
        "p_holm": "p (Holm)",
        "wtl": "win/tie/loss",
        "mde": "detectable",
        "queries_needed": "queries needed",
    }
    return table(rows, columns) if rows else ""


def listing(entries: Iterable[Entry]) -> str:
    """Entries, a line each: day, type, id, title."""
    rows = [{"day": format_time(e.created_at)[:10], "type": e.type, "id": e.id, "title": e.title} for e in entries]
    return table(rows, {"day": "created", "type": "type", "id": "id", "title": "title"})


def hits(found: Iterable[Hit]) -> str:
    """Search results, one block each."""
    blocks = []
    for hit in found:
        score = "     -" if hit.score is None else f"{hit.score:.4f}"
        blocks.append(f"{hit.rank:>3}  {score}  {visible(hit.entry.id)}  {visible(hit.entry.title)}")
        if hit.entry.text:
            blocks.append(f"             {visible(hit.entry.text)[:100]}")
    return "\n".join(blocks) or "nothing found"


def tuning(record: Mapping[str, Any]) -> str:
    """The verdict of a tuning and the numbers behind it."""
    names = {"in_sample": "tuned, in sample", "out_of_fold": "tuned, out of fold", "holdout": "tuned, held out"}
    names |= {"baseline": "current, held out", "gain": "gain, held out"}
    rows = [
        {"estimate": text, **record[name], "value": _triple(record[name])}
        for name, text in names.items()
        if record[name]
    ]
    ship = record["verdict"] == "ship"
    chance = f"p {record['gain']['p']:.4f}"
    reason = f"the held-out gain lies above 0, {chance}" if ship else f"no proven held-out gain, {chance}"
    reason += "" if record["whole"] else "; broken off"
    best = record["optimum"]
    optimum = f"{best['value']:.4f}, {record['certificate']}, no setting exceeds {best['bound']:.4f}"
    depths = record["depths"]
    deeper = f", {_depths(depths['tuned'])}" if depths["tuned"] != depths["current"] else ""
    parts = [
        f"verdict: {record['verdict']} ({reason})\n"
        f"current: {record['current']}\ntuned:   {record['tuned']}{deeper}\n"
        f"optimum: {best['strategy']}, {_depths(best['depths'])}  ({optimum})",
        table(rows, {"estimate": record["objective"], "value": "value [95%]", "queries": "queries"}),
        "embedded: {current} of {queries} queries now, {tuned} when tuned".format(**record["embedding_calls"]),
    ]
    return "\n\n".join(parts + ([_ablation(record["ablation"])] if record.get("ablation") else []))


def _depths(depths: Mapping[str, int | None]) -> str:
    """Depths in words; those of retrievers without one are left out."""
    alike: dict[int, list[str]] = {}
    for name, depth in depths.items():
        if depth is not None:
            alike.setdefault(depth, []).append(name)
    return ", ".join(f"depth {depth} of {' and '.join(sorted(names))}" for depth, names in sorted(alike.items()))


def _ablation(record: Mapping[str, Any]) -> str:
    """What signals, weights and labels are worth: three tables."""
    signals = [
        {
            "signal": row["signal"],
            "seen": f"{row['in_sample']:+.4f}",
            "unseen": f"{row['held_out']['value']:+.4f} [{row['held_out']['low']:+.4f}, "
            f"{row['held_out']['high']:+.4f}]",
            "p": f"{row['held_out']['p']:.4f}",
        }
        for row in record["signals"]
    ]
    decimals = ("weight", "at", "best", "without", "alone")
    weights = [row | {name: f"{row[name]:.4f}" for name in decimals} for row in record["weights"]]
    labels = [
        {
            "queries": f"{row['queries']:.0f}",
            "seen": f"{row['in_sample']:.4f}",
            "unseen": f"{row['held_out']:.4f} ({row['low']:.4f} to {row['high']:.4f})",
        }
        for row in record["labels"]
    ]
    worth = {"signal": "signal", "seen": "worth in sample", "unseen": "held out [95%]", "p": "p"}
    moved = {"signal": "signal", "weight": "weight", "best": "best", "at": "at weight"}
    moved |= {"without": "at weight 0", "alone": "alone"}
    learned = {"queries": "labelled queries", "seen": "in sample", "unseen": "held out (range)"}
    return "\n\n".join((table(signals, worth), table(weights, moved), table(labels, learned)))


def _triple(estimate: Mapping[str, Any]) -> str:
    return f"{estimate['value']:.4f} [{estimate['low']:.4f}, {estimate['high']:.4f}]"


def _interval(row: Mapping[str, Any]) -> str:
    return _triple({**row, "value": row["mean"]})


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else visible(str(value))


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, int | float)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
    return "  ".join(parts).rstrip()
