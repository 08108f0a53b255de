"""Prints results as text for a terminal, with control characters escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from steelyard.base.errors import visible
from steelyard.base.fields import format_time
from steelyard.memory.entry import Entry, Hit
from steelyard.systems.forms import scan_result
from steelyard_eval.common.answer import in_terminal
from steelyard_eval.common.console import painted, wrapped
from steelyard_eval.common.console import table as table
from steelyard_eval.common.console import width as width
from steelyard_eval.show import silence_table, stale_table
from steelyard_eval.show.layers_table import COLUMNS, rows

SHOWN = 3
"""Entries that are named for each query to label."""
INDENT = 13
"""The column at which the text below a hit begins, under its id."""


def compared(record: Mapping[str, Any]) -> str:
    """Print a comparison: on what, the rows, the tests, and what is told of silence, stale entries and layers."""
    if "agreement" in record:
        return unlabelled(record)
    facts = record["dataset"]
    head = f"{facts['name']} ({record['split']}): {facts['judged']} queries, limit {record['limit']}"
    head += f", intents {record['intents']}" if record["intents"] else ""
    parts = [f"{head}, vectors {record['model'] or 'none'}", comparison(record), tests(record)]
    parts += [silence(record), stale(record), layers(record)]
    parts += [verification(record["verification"])] if record.get("verification") else []
    return "\n\n".join(filter(None, parts))


def comparison(record: Mapping[str, Any], metrics: Sequence[str] = ()) -> str:
    """Print the rows of a comparison: label, family, metrics (all by default), verdict, latency and cost.

    The first metric is shown with its interval, the others without; the report has all intervals.
    """
    values = {(row["label"], row["metric"]): row for row in record["results"]}
    verdicts = {row["challenger"]: row["verdict"] for row in record["comparisons"]}
    timing = {row["label"]: row for row in record["timing"]}
    names = metrics or tuple(dict.fromkeys(row["metric"] for row in record["results"]))
    rows = []
    for configuration in record["configurations"]:
        label = configuration["label"]
        took = timing.get(label, {})
        row = {"label": label, "family": configuration["family"], "verdict": verdicts.get(label, "baseline")}
        row |= {metric: f"{values[label, metric]['mean']:.4f}" for metric in names}
        row |= {names[0]: _interval(values[label, names[0]])}
        row |= {"p50": took.get("p50_ms"), "calls": took.get("embedding_calls")}
        rows.append(row)
    columns = {"label": "", "family": "family", **{m: m for m in names}, names[0]: f"{names[0]} [95%]"}
    columns |= {
        "verdict": f"{record['primary']} against {record['baseline']}",
        "p50": "p50 ms",
        "calls": "embeddings",
    }
    why = [wrapped(f"{row['challenger']}: {row['why']}", 4) for row in record["comparisons"] if row.get("why")]
    return "\n\n".join(filter(None, (table(rows, columns), "\n".join(why))))


def tests(record: Mapping[str, Any]) -> str:
    """Print the paired comparisons: differences, p-values, and the smallest difference that was detectable."""
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


def layers(record: Mapping[str, Any]) -> str:
    """Print how far layered searches went and how long their layers took; nothing where none was layered."""
    found = rows(record)
    return table(found, COLUMNS) if found else ""


def silence(record: Mapping[str, Any]) -> str:
    """Print what contenders show and keep silent about; nothing where neither floors nor queries ask for it."""
    found = silence_table.rows(record)
    return table(found, silence_table.COLUMNS) if found else ""


def stale(record: Mapping[str, Any]) -> str:
    """Print how often lists show what is stale above what took its place; nothing where nothing can be."""
    found = stale_table.rows(record)
    return table(found, stale_table.COLUMNS) if found else ""


def verification(record: Mapping[str, Any]) -> str:
    """Print the largest differences between our values and those of ir_measures on the same runs."""
    rows = [
        {
            **row,
            "largest": f"{row['largest_difference']:.1e}" if row["checked"] else "not one of its measures",
        }
        for row in record["metrics"]
    ]
    columns = {"metric": "metric", "largest": f"largest difference from {record['tool']}"}
    return table(rows, columns | {"label": "of", "query": "at query"})


def listing(entries: Iterable[Entry]) -> str:
    """Print one line for each entry: day, type, id and title."""
    rows = [{"day": format_time(e.created_at)[:10], "type": e.type, "id": e.id, "title": e.title} for e in entries]
    return table(rows, {"day": "created", "type": "type", "id": "id", "title": "title"})


def hits(found: Iterable[Hit]) -> str:
    """Print a block for each search result: rank, score, id and title; the text; the signals of the score."""
    return "\n".join(map(_hit, found)) or "nothing found"


def _hit(hit: Hit) -> str:
    breakdown = "  ".join(f"{visible(name)} {value:.4f}" for name, value in hit.signals.items())
    text = wrap(visible(hit.entry.text), width() - INDENT, max_lines=4, placeholder=" ...")
    return "\n".join([_head(hit), *(" " * INDENT + line for line in (*text, breakdown) if line)])


def scan(found: Iterable[Hit]) -> str:
    """Print a short block for each search result: rank, score, id and title; size, type and a snippet."""
    return "\n".join(map(_scanned, found)) or "nothing found"


def _scanned(hit: Hit) -> str:
    look = scan_result(hit)
    about = f"~{look['tokenEstimate']} tokens" + (f", {visible(look['type'])}" if look["type"] else "")
    lines = wrap(f"{about}: {visible(look['snippet'])}", width() - INDENT)
    return "\n".join([_head(hit), *(" " * INDENT + line for line in lines)])


def _head(hit: Hit) -> str:
    score = "     -" if hit.score is None else f"{hit.score:.4f}"
    place = f"{hit.rank:>3}  {score}  {visible(hit.entry.id)}"
    return f"{painted(place)}  {visible(hit.entry.title)[: max(0, width() - len(place) - 2)]}".rstrip()


def tuning(record: Mapping[str, Any]) -> str:
    """Print the sentence of a tuning, then its numbers."""
    names = {"in_sample": "chosen, these queries", "baseline": "current, these queries"}
    names |= {"promise": "gain promised", "holdout": "gain, held out"}
    rows = [
        {"estimate": text, **record[name], "value": _triple(record[name])}
        for name, text in names.items()
        if record[name] and (name != "promise" or record["promise_stated"])
    ]
    best, depths = record["optimum"], record["depths"]
    intents = f", intents {record['intents']}" if record["intents"] else ""
    optimum = f"{best['value']:.4f}, {record['certificate']}"
    deeper = f", {_depths(depths['tuned'])}" if depths["tuned"] != depths["current"] else ""
    found = ", ".join(filter(None, (best["strategy"], _depths(best["depths"]))))
    parts = [
        in_terminal(record),
        "\n".join(
            (
                f"verdict: {record['verdict']}" + ("" if record["whole"] else ", broken off") + intents,
                wrapped(f"current: {record['current']}", 9),
                wrapped(f"chosen:  {record['tuned']}{deeper}", 9),
                *([wrapped(f"drops:   {'; '.join(dropped)}", 9)] if (dropped := record.get("dropped")) else []),
                wrapped(f"optimum: {found}  ({optimum})", 9),
            )
        ),
        table(rows, {"estimate": record["objective"], "value": "value [95%]", "queries": "queries"}),
        _embedded(record["embedding_calls"]),
    ]
    return "\n\n".join(parts + ([_ablation(record["ablation"])] if record.get("ablation") else []))


def recommendation(record: Mapping[str, Any]) -> str:
    """The sentence of a recommendation, then the leaderboard with its costs."""
    if "agreement" in record:
        return unlabelled(record)
    timing = {row["label"]: row for row in record["timing"]}
    rows = [_board_row(row, timing.get(row["label"], {})) for row in record["leaderboard"]]
    columns = {"label": "", "value": f"{record['primary']} [95%]", "gain": "against current [95%]"}
    columns |= {"took": "p50 ms", "calls": "embedded", "size": "MB", "front": "Pareto"}
    facts = [f"verdict: {record['verdict']}" + ("" if record["whole"] else ", broken off")]
    facts += [f"intents: {record['intents']}"] if record["intents"] else []
    if record["chosen"]:
        facts += [f"chosen:  {record['chosen']['strategy']}, {_depths(record['chosen']['depths'])}"]
    facts += [f"current: {record['current']['strategy']}", *_second(record)]
    note = "Tuned rows were chosen on these very queries, so they are optimistically biased; the gain above, made "
    note += f"out of fold over {record['promise']['queries']} queries, is not."
    parts = [in_terminal(record), table(rows, columns), wrapped(note, 0)]
    return "\n\n".join([*parts, "\n".join(wrapped(fact, 9) for fact in facts)])


def unlabelled(record: Mapping[str, Any]) -> str:
    """Print what is known without labels: which lists agree with the baseline's, and what to label first."""
    name = record["baseline"] if "baseline" in record else record["current"]["label"]
    own = [one for one in record["agreement"] if name in (one["one"], one["other"])] or record["agreement"]
    rows = [{**one, "pair": one["other"] if one["one"] == name else one["one"]} for one in own]
    first = [
        {**one, "disagreement": f"{one['disagreement']:.2f}", "entries": " ".join(one["entries"][:SHOWN])}
        for one in record["label_first"]
    ]
    columns = {"id": "label first", "disagreement": "disagreement", "text": "query", "entries": "judge"}
    parts = [in_terminal(record)]
    parts += [table(rows, {"pair": f"against {name}", "rbo": "RBO", "jaccard": "Jaccard@10"})] if rows else []
    return "\n\n".join([*parts, *([table(first, columns)] if first else [])])


def _board_row(row: Mapping[str, Any], took: Mapping[str, Any]) -> dict[str, Any]:
    gain = row["gain"]
    change = "current" if gain is None else f"{gain['mean']:+.3f} [{gain['low']:+.3f}, {gain['high']:+.3f}]"
    value = f"{row['mean']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
    costs = {"took": took.get("p50_ms"), "calls": took.get("embedding_calls"), "size": _megabytes(took)}
    return {"label": row["label"], "value": value, "gain": change, **costs, "front": _mark(took)}


def _megabytes(took: Mapping[str, Any]) -> float | None:
    """The size of its indexes, of keywords and of vectors."""
    if took.get("vector_bytes") is None:
        return None
    return float(took["keyword_bytes"] + took["vector_bytes"]) / 1e6


def _mark(took: Mapping[str, Any]) -> str:
    """A star on the Pareto front of quality, latency and embedding calls."""
    return "*" if took.get("pareto") else ""


def _second(record: Mapping[str, Any]) -> list[str]:
    second = record["runner_up"]
    if second is None:
        return []
    parted = "told apart by these queries" if second["parted"] else "not told apart by these queries"
    ends = f"{second['mean']:+.4f} [{second['low']:+.4f}, {second['high']:+.4f}]"
    return [f"next:    {second['label']}, behind by {ends}, {parted}"]


def _embedded(calls: Mapping[str, int | None]) -> str:
    if calls["current"] is None:
        return "embedded: unknown for the lists of other engines"
    return "embedded: {current} of {queries} queries now, {tuned} when tuned".format(**calls)


def _depths(depths: Mapping[str, int | None]) -> str:
    """Depths in words, without retrievers that have none."""
    alike: dict[int, list[str]] = {}
    for name, depth in depths.items():
        if depth is not None:
            alike.setdefault(depth, []).append(name)
    return ", ".join(f"depth {depth} of {' and '.join(sorted(names))}" for depth, names in sorted(alike.items()))


def _ablation(record: Mapping[str, Any]) -> str:
    """Three tables on what signals, weights and labels are worth."""
    signals = [
        {
            "signal": row["signal"],
            "seen": f"{row['in_sample']:+.4f}",
            "unseen": _held_out(row["held_out"]),
            "p": f"{row['held_out']['p']:.4f}" if row["held_out"] else "-",
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


def _held_out(gain: Mapping[str, Any] | None) -> str:
    """A gain with its interval; nothing where nothing is held out."""
    return f"{gain['value']:+.4f} [{gain['low']:+.4f}, {gain['high']:+.4f}]" if gain else "-"


def _triple(estimate: Mapping[str, Any]) -> str:
    return f"{estimate['value']:.4f} [{estimate['low']:.4f}, {estimate['high']:.4f}]"


def _interval(row: Mapping[str, Any]) -> str:
    return _triple({**row, "value": row["mean"]})
