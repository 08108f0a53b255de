"""Prints what was learned as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.base.escape import visible
from steelyard_eval.common.console import table, wrapped

Record = Mapping[str, Any]


def learned(record: Record) -> str:
    """The sentence, the gain in every view, what it rests on, and what was set aside."""
    best, chosen = record["best"], record["chosen"]
    name = "chosen" if chosen else "nearest"
    facts = [
        f"verdict: {record['verdict']}" + (" (refused)" if record["refusal"] else ""),
        f"current: {record['current']['strategy']}",
        f"{name}: {(chosen or best)['strategy']}",
    ]
    parts = [wrapped(record["sentence"], 0), "\n".join(wrapped(visible(fact), 9) for fact in facts)]
    parts += [_views(record), "\n".join(wrapped(line, 13) for line in _rests_on(record))]
    parts += [_acts(record), offered(record["off_policy"]), _rivals(record), _aside(record)]
    return "\n\n".join(part for part in parts if part)


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.4f}"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _views(record: Record) -> str:
    rows = [
        {
            "view": f"{row['imputed']:g} x prior",
            "gain": _signed(row["gain"]),
            "error": _plain(row["error"]),
            "refit": _plain(row["refit_error"]),
        }
        for row in record["views"]
    ]
    if labels := record["labels"]:
        own = {"gain": _signed(labels["gain"]), "error": _plain(labels["error"]), "refit": "-"}
        both = {"gain": _signed(labels["pooled_gain"]), "error": _plain(labels["pooled_error"]), "refit": "-"}
        rows += [{"view": f"{labels['queries']} labelled queries", **own}, {"view": "pooled", **both}]
    columns = {"view": "entries never shown count", "gain": "gain, nDCG@10", "error": "query error"}
    return table(rows, columns | {"refit": "refit error"})


def _rests_on(record: Record) -> list[str]:
    log, examination = record["log"], record["examination"]
    error = "" if examination["error"] is None else f", error {examination['error']:.2f}"
    simulated = ", simulated" if log["simulated"] else ""
    lines = [
        f"log:         {log['impressions']:,} searches, {log['queries']} distinct queries (worth "
        f"{record['effective_queries']:.0f} equally frequent ones), {log['acts']:,} acts, "
        f"{log['span']}{simulated}",
        f"examination: place ** -{examination['exponent']:.2f} ({examination['source']}{error})",
        f"unseen:      {record['unseen']:.0%} of the new first ten places were never shown for their query",
    ]
    if record["flip"] is not None:
        lines.append(f"flips:       where entries never shown count {record['flip']:g} x prior")
    for policy in record["policies"]:
        named = visible(policy["name"]) or "without a name"
        lines.append(
            f"policy:      {named}: {policy['searches']:,} searches, {policy['agreement']:.1%} of places equal, "
            f"{policy['how']}"
        )
    for row in (*record["halves"], *record["intents"]):
        who = row.get("half") or visible(row["intent"])
        own = f"; its own queries: {row['verdict']} {row['strategy'] or ''}".rstrip() if "verdict" in row else ""
        lines.append(f"{who + ':':12} {row['gain']:+.4f}, error {row['error']:.4f}, {row['queries']} queries{own}")
    return lines


def _acts(record: Record) -> str:
    rows = [
        {"kind": row["kind"], "count": row["count"], "lift": f"{row['lift']:.1f}"}
        for row in record["acts"]["kinds"]
    ]
    title = f"lift (all: {record['acts']['lift']:.1f})"
    return table(rows, {"kind": "act", "count": "acts", "lift": title}) if rows else ""


def _rivals(record: Record) -> str:
    rows = [{**row, "gain": _signed(row["gain"])} for row in record["rivals"]]
    return (
        table(rows, {"rule": "simpler rule", "gain": "gain by the learner", "strategy": "would use"})
        if rows
        else ""
    )


def _aside(record: Record) -> str:
    rows = [
        {"count": row["count"], "rule": row["rule"], "lines": ", ".join(map(str, row["lines"]))}
        for row in record["log"]["set_aside"]
    ]
    return table(rows, {"count": "set aside", "rule": "why", "lines": "lines"}) if rows else ""


def offered(found: Record | None) -> str:
    """What another policy would have been worth, by logged probabilities."""
    if found is None:
        return ""
    if found["refusal"]:
        return f"{found['of']}: refused, {found['refusal']}"
    names = {"ips": "inverse propensity", "snips": "self-normalised", "dr": "doubly robust"}
    rows = [
        {"by": title, "value": "{value:.5f} [{low:.5f}, {high:.5f}]".format(**found[name])}
        for name, title in names.items()
        if found[name]
    ]
    weights = f"mean weight {found['mean_weight']:.3f}, largest {found['largest']:.1f}"
    worth = f"{found['shows']:,} shows, worth {found['effective']:.0f}; {weights}"
    columns = {"by": found["of"], "value": "acts per show [95%]"}
    return f"{table(rows, columns)}\n{worth}"


def duelled(found: Sequence[Record]) -> str:
    """Which of two interleaved rankings was preferred, by the sign test."""
    rows = [
        {
            "other": row["other"] or "all together",
            "wtl": f"{row['wins']}/{row['ties']}/{row['losses']}",
            "preferred": "-" if row["preferred"] is None else f"{row['preferred']:.0%}",
            "p": f"{row['p']:.4f}",
        }
        for row in found
        if row["wins"] + row["ties"] + row["losses"]
    ]
    columns = {"other": "drafted in", "wtl": "win/tie/loss", "preferred": "preferred", "p": "p"}
    return table(rows, columns) if rows else "no list of this log was interleaved"
