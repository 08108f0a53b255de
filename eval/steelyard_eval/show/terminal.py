"""Prints results as text for a terminal, with control characters escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap

from steelyard.base.errors import visible
from steelyard.base.fields import format_time
from steelyard.memory.entry import Entry, Hit
from steelyard.systems.forms import scan_result
from steelyard_eval.common.answer import CHOSEN, chosen, data_set, in_terminal, place_of_choice
from steelyard_eval.common.console import cut, painted, wrapped
from steelyard_eval.common.console import table as table
from steelyard_eval.common.console import width as width
from steelyard_eval.common.documents.parts import Ends
from steelyard_eval.common.documents.results import (
    LeaderboardRecord,
    ResultsDocument,
    TimingRecord,
    VerificationRecord,
)
from steelyard_eval.common.markup import ends, number, written
from steelyard_eval.show import further_tables as further

POWER = "80% power from: a difference of this size or more would be found 4 times in 5."
"""Below the tests."""
INDENT = 13
"""The column at which the text below a hit begins, under its id."""


def compared(record: ResultsDocument) -> str:
    """Print a comparison: on what, the rows, the tests, and what is told of silence, stale entries and layers."""
    if "agreement" in record:
        return unlabelled(record)
    facts = record["dataset"]
    head = f"{data_set(facts)} ({record['split']}): {facts['judged']} queries, limit {record['limit']}"
    head += f", intents {record['intents']}" if record["intents"] else ""
    parts = [in_terminal(record), wrapped(f"{head}, vectors {record['model'] or 'none'}")]
    parts += [comparison(record), tests(record)]
    parts += [_legended(text, rows) for text, rows in further.tables(record)]
    parts += [verification(record["verification"])] if record.get("verification") else []
    return "\n\n".join(filter(None, parts))


def comparison(record: ResultsDocument) -> str:
    """Print the rows of a comparison: label, metrics, latency and cost.

    The first metric is shown with its interval, the others without; the report has all intervals.
    """
    values = {(row["label"], row["metric"]): row for row in record["results"]}
    timing = {row["label"]: row for row in record["timing"]}
    first, *others = dict.fromkeys(row["metric"] for row in record["results"])
    rows = []
    for label in (contender["label"] for contender in record["configurations"]):
        took = timing.get(label, {})
        rows.append(
            {
                "": label,
                f"{first} [95%]": _triple(values[label, first]["mean"], values[label, first], ".3f"),
                **{metric: f"{values[label, metric]['mean']:.3f}" for metric in others},
                "p50 ms": took.get("p50_ms"),
                "queries embedded": took.get("embedding_calls"),
            }
        )
    return table(rows)


def tests(record: ResultsDocument) -> str:
    """Print the paired comparisons: verdicts, differences, p-values, and what is found 4 times in 5."""
    rows = [
        {
            f"against {record['baseline']}": row["challenger"],
            "verdict": row["verdict"],
            f"{record['primary']} difference [95%]": _signed(row["delta"], row, "+.3f"),
            "p": f"{row['p']:.4f}",
            "p (Holm)": f"{row['p_holm']:.4f}",
            "win/tie/loss": f"{row['wins']}/{row['ties']}/{row['losses']}",
            "80% power from": "-" if row["mde"] is None else f"{row['mde']:.3f}",
        }
        for row in record["comparisons"]
    ]
    reasons = {row["challenger"]: row.get("why") for row in record["comparisons"]}
    above = record.get("beside")
    why = [wrapped(f"{label}: {told}", 4) for label, told in reasons.items() if told and told != above]
    legend = wrapped(POWER) if any(row["mde"] is not None for row in record["comparisons"]) else ""
    return "\n\n".join(filter(None, (table(rows), legend, "\n".join(why))))


def _legended(text: str, rows: Sequence[Mapping[str, object]]) -> str:
    """A table below the line that says what its columns mean."""
    return f"{wrapped(text)}\n\n{table(rows)}"


def verification(record: VerificationRecord) -> str:
    """Print the largest differences between our values and those of ir_measures on the same runs."""
    largest = f"largest difference from {record['tool']}"
    rows = [
        {
            "metric": row["metric"],
            largest: f"{row['largest_difference']:.1e}" if row["checked"] else "not one of its measures",
            "of": row["label"],
            "at query": row["query"],
        }
        for row in record["metrics"]
    ]
    return table(rows)


def listing(entries: Iterable[Entry]) -> str:
    """Print one line for each entry: day, type, id and title."""
    return table(
        [
            {"created": format_time(e.created_at)[:10], "type": e.type, "id": e.id, "title": e.title}
            for e in entries
        ],
        {name: name for name in ("created", "type", "id", "title")},
    )


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
    return f"{painted(place)}  {cut(visible(hit.entry.title), width() - len(place) - 2)}".rstrip()


def recommendation(record: ResultsDocument) -> str:
    """The sentence of a recommendation, then the leaderboard with its costs."""
    if "agreement" in record:
        return unlabelled(record)
    timing = {row["label"]: row for row in record["timing"]}
    value = f"{record['primary']} [95%]"
    choice = chosen(record)
    rows = [
        _board_row(row, timing.get(row["label"], {}), value, row["label"] == choice)
        for row in record["leaderboard"]
    ]
    facts = [f"verdict: {record['verdict']}" + ("" if record["whole"] else ", broken off")]
    facts += [f"intents: {record['intents']}"] if record["intents"] else []
    if winner := record["chosen"]:
        facts += [", ".join(filter(None, (f"chosen:  {winner['strategy']}", _depths(winner["depths"]))))]
        facts += [f"drops:   {'; '.join(dropped)}"] if (dropped := winner.get("dropped")) else []
    facts += [f"current: {record['current']['strategy']}", *_second(record)]
    front = [row["label"] for row in record["leaderboard"] if timing.get(row["label"], {}).get("pareto")]
    facts += [f"unbeaten in quality and cost: {'; '.join(front)}"] if front else []
    note = "Tuned rows were chosen on these very queries, so they are optimistically biased"
    if (promise := record["promise"]) and record["promise_stated"]:
        expected = number(promise["value"], signed=True)
        note += f"; the {expected} above, measured on queries that had no part in the choice, is what to expect"
    parts = [in_terminal(record), wrapped(f"{note}. {place_of_choice(record)}".rstrip()), table(rows)]
    return "\n\n".join([*parts, "\n".join(wrapped(fact, 9) for fact in facts)])


def unlabelled(record: ResultsDocument) -> str:
    """Print what is known without labels: the answer, and which lists agree with the baseline's."""
    rows = further.agreement(record)
    return "\n\n".join((in_terminal(record), *([_legended(further.AGREEMENT, rows)] if rows else [])))


def _board_row(row: LeaderboardRecord, took: TimingRecord, value: str, is_choice: bool) -> dict[str, object]:
    gain = row["gain"]
    return {
        "": f"{row['label']} ({CHOSEN})" if is_choice else row["label"],
        value: f"{row['mean']:.3f} {ends(row['low'], row['high'], '.3f')}".rstrip(),
        "against current [95%]": "current" if gain is None else _signed(gain["mean"], gain, "+.3f"),
        "p50 ms": took.get("p50_ms"),
        "queries embedded": took.get("embedding_calls"),
        "index MB": _megabytes(took),
    }


def _megabytes(took: TimingRecord) -> float | None:
    """The size of its indexes, of keywords and of vectors."""
    keywords, vectors = took.get("keyword_bytes"), took.get("vector_bytes")
    return None if keywords is None or vectors is None else (keywords + vectors) / 1e6


def _second(record: ResultsDocument) -> list[str]:
    second = record["runner_up"]
    if second is None:
        return []
    parted = "told apart by these queries" if second["parted"] else "not told apart by these queries"
    behind, around = second["mean"] >= 0, Ends(low=second["low"], high=second["high"])
    if not behind and around["low"] is not None and around["high"] is not None:
        around = {"low": -around["high"], "high": -around["low"]}
    bounds = ends(around["low"], around["high"], "+.4f")
    lead = f"{'behind' if behind else 'ahead on these labels'} by {abs(second['mean']):.4f} {bounds}"
    return [f"next:    {second['label']}, {lead}, {parted}"]


def _depths(depths: Mapping[str, int | None]) -> str:
    """Depths in words, without retrievers that have none."""
    alike: dict[int, list[str]] = {}
    for name, depth in depths.items():
        if depth is not None:
            alike.setdefault(depth, []).append(name)
    return ", ".join(f"depth {depth} of {' and '.join(sorted(names))}" for depth, names in sorted(alike.items()))


def _signed(value: float, part: Ends, form: str = "+.4f") -> str:
    """A difference with its interval."""
    return _triple(value, part, form)


def _triple(value: float, part: Ends, form: str = ".4f") -> str:
    return f"{written(value, form)} {ends(part.get('low'), part.get('high'), form)}".rstrip()
