"""Prints what was learned as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.base.escape import visible
from steelyard_eval.common.answer import in_terminal
from steelyard_eval.common.console import table, wrapped
from steelyard_eval.common.documents.learn import DuelRecord, LearnDocument, Turns

GAIN = "gain, nDCG@10"


def learned(record: LearnDocument) -> str:
    """The sentence, what it rests on, the gain in every view, and what was set aside."""
    best, chosen = record["best"], record["chosen"]
    name = "chosen" if chosen else "nearest"
    facts = [
        f"verdict: {record['verdict']}" + (" (refused)" if record["refusal"] else ""),
        f"current: {record['current']['strategy']}",
        f"{name}: {(chosen or best)['strategy']}",
    ]
    parts = [
        in_terminal(record),
        wrapped(record["evidence"]),
        "\n".join(wrapped(visible(fact), 9) for fact in facts),
    ]
    parts += [wrapped(record["warning"], 0), _evidence(record), _parts(record)]
    parts += ["\n".join(wrapped(line, 13) for line in _rests_on(record))]
    parts += [duelled(record["interleaved"]) if record["interleaved"] else ""]
    parts += [_acts(record), _follows(record), _aside(record)]
    return "\n\n".join(part for part in parts if part)


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.4f}"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _evidence(record: LearnDocument) -> str:
    """What labels say of the candidate, then what acts do."""
    told: list[tuple[str, float | None, float | None, float | None]] = []
    if labels := record["labels"]:
        told.append((f"{labels['queries']} labelled queries", labels["gain"], labels["error"], None))
        if labels["share"]:
            name = f"the same, sharpened by acts on {labels['others']} more"
            told.append((name, labels["both_gain"], labels["both_error"], None))
    for row in record["views"]:
        name = f"acts alone, unseen entries at {row['imputed']:g}"
        told.append((name, row["gain"], row["error"], row["refit_error"]))
    return table(
        [
            {"by": by, GAIN: _signed(gain), "query error": _plain(error), "refit error": _plain(refit)}
            for by, gain, error, refit in told
        ]
    )


def _parts(record: LearnDocument) -> str:
    return table(
        [
            {
                "acts alone": row["part"],
                GAIN: _signed(row["gain"]),
                "query error": _plain(row["error"]),
                "queries": row["queries"],
            }
            for row in record["pieces"]
        ]
    )


def _follows(record: LearnDocument) -> str:
    odds = "log odds, highest to lowest [95%]"
    return table(
        [
            {"acts follow": row["label"], odds: f"{row['delta']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]"}
            for row in record["follows"]
        ]
    )


def _rests_on(record: LearnDocument) -> list[str]:
    log, clients = record["log"], record["clients"]
    simulated = ", simulated" if log["simulated"] else ""
    lines = [
        f"log:         {log['impressions']:,} searches, {log['queries']} distinct queries (worth "
        f"{record['effective_queries']:.0f} equally frequent ones), {log['acts']:,} acts, "
        f"{log['span']}{simulated}",
        f"clients:     {clients['count']:,}; the largest made {clients['largest']:.0%} of the searches",
    ]
    if record["views"]:
        lines += [
            f"examination: {record['examination']['text']}",
            f"unseen:      {record['unseen']:.0%} of the new first ten places were never shown for their query",
        ]
    for policy in record["policies"]:
        named = visible(policy["name"]) or "without a name"
        lines.append(
            f"policy:      {named}: {policy['searches']:,} searches, {policy['agreement']:.1%} of places equal, "
            f"{policy['how']}"
        )
    return lines


def _acts(record: LearnDocument) -> str:
    if not record["views"]:
        return ""  # without lists there are no classes that an act could tell apart
    lift = f"lift (all: {record['acts']['lift']:.1f})"
    return table(
        [{"act": row["kind"], "acts": row["count"], lift: f"{row['lift']:.1f}"} for row in record["acts"]["kinds"]]
    )


def _aside(record: LearnDocument) -> str:
    return table(
        [
            {"set aside": row["count"], "why": row["rule"], "lines": ", ".join(map(str, row["lines"]))}
            for row in record["log"]["set_aside"]
        ]
    )


def duelled(found: Sequence[DuelRecord]) -> str:
    """Which of two interleaved rankings was preferred, how sure that is, and what each client preferred."""
    told = [row for row in found if row["wins"] + row["ties"] + row["losses"]]
    if not told:
        return "no list of this log was interleaved"
    rivals = [row for row in told if row["other"]]
    first = rivals[0] if len(rivals) == 1 else next(row for row in told if not row["other"])
    rows = [_duel(row["other"] or "all together", row, row["p"]) for row in (rivals if len(rivals) == 1 else told)]
    if len(first["clients"]) > 1:
        rows += [_duel(f"  {row['client'] or '(no name)'}", row) for row in first["clients"]]
    return f"{first['sentence']}\n\n{table(rows)}"


def _duel(name: str, row: Turns, p: float | None = None) -> dict[str, str]:
    """A row of the table: a ranking, or a client, which has no test of its own."""
    decided = row["wins"] + row["losses"]
    return {
        "drafted in": name,
        "win/tie/loss": f"{row['wins']}/{row['ties']}/{row['losses']}",
        "preferred": f"{row['wins'] / decided:.0%}" if decided else "-",
        "p": "" if p is None else f"{p:.4f}",
    }
