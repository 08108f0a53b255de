"""What a comparison tells beside its means, as rows by their headings, for the terminal and for reports."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard_eval.common.documents.results import ResultsDocument, TimingRecord

Rows = list[dict[str, str]]
EVERY = 4
"""Every so many points of a curve are shown."""
LAYERS = ("l0", "l1", "l2")
SILENCE = (
    "A query that nothing answers has no nDCG; what counts is whether anything is shown for it (false answers). "
    "Words saved, relevant lost: the shares of both that the floor takes off the lists."
)
STALE = (
    "Outdated: queries whose list shows an entry that was replaced or has expired, and none above it that took "
    "its place."
)
LAYERED = (
    "How far each layered search went: queries with an abstract near enough, and those that needed all details."
)
AGREEMENT = (
    "RBO: how alike two lists are, 0 to 1, with most weight on the first places. Jaccard@10: the share of the "
    "entries in the first ten of either that is in both."
)


def tables(record: ResultsDocument) -> list[tuple[str, Rows]]:
    """Of silence, stale entries and layers, where there is anything: what the columns mean, and the rows."""
    parts = ((SILENCE, silence(record)), (STALE, stale(record)), (LAYERED, layers(record)))
    return [(text, rows) for text, rows in parts if rows]


def layers(record: ResultsDocument) -> Rows:
    """How far each layered search went, and how long its layers took where that was measured."""
    timing = {row["label"]: row for row in record.get("timing", ())}
    return [
        {
            "layered search": row["label"],
            "queries": str(row["queries"]),
            "at threshold": str(row["at_threshold"]),
            "lower step": str(sum(row["relaxed"].values())),
            "all details": str(row["full_search"]),
            "no result": str(row["without_result"]),
            "L0, L1, L2 found": ", ".join(f"{row['hit_rates'][layer]:.0%}" for layer in LAYERS),
            "p50 ms L0, L1, L2, all": _milliseconds(timing.get(row["label"], {}), "p50_ms"),
            "p99 ms L0, L1, L2, all": _milliseconds(timing.get(row["label"], {}), "p99_ms"),
        }
        for row in record.get("layers", ())
    ]


def _milliseconds(took: TimingRecord, name: str) -> str:
    """One percentile of each layer and of the whole search; a dash where it was not measured."""
    layered = took.get("layers", {})
    values = [layered.get(layer, {}).get(name) for layer in LAYERS] + [took.get(name)]
    return ", ".join("-" if value is None else f"{value:.2f}" for value in values)


def silence(record: ResultsDocument) -> Rows:
    """What contenders show and keep silent about, where floors or questions without an answer ask for it."""
    return [
        {
            "what is shown": row["label"],
            "answered": str(row["answered"]),
            "silenced": str(row["silenced"]),
            "words a query": f"{row['words']:.0f}",
            "words saved": f"{row['saved']:.0%}" if "lost" in row else "-",
            "relevant lost": f"{row['lost']:.1%}" if "lost" in row else "-",
            "false answers": f"{row['false_answers']} of {row['none']}" if "none" in row else "-",
            "their share [95%]": f"[{row['low']:.2f}, {row['high']:.2f}]" if "none" in row else "-",
        }
        for row in record.get("silence", ())
    ]


def other_floors(record: ResultsDocument) -> Rows:
    """What other floors of the same contenders would lose, answer and show: risk against coverage."""
    return [
        {
            "floor of": row["label"],
            "floor": f"{point['floor']:.4f}",
            "lost": f"{point['lost']:.1%}",
            "questions answered": f"{point['answered']:.0%}",
            "words left": f"{point['words']:.0%}",
        }
        for row in record.get("silence", ())
        for point in row.get("curve", ())[::EVERY]
    ]


def stale(record: ResultsDocument) -> Rows:
    """How often lists show what was replaced or has expired above what took its place."""
    baseline = record.get("baseline")
    return [
        {
            "outdated": row["label"],
            "queries": f"{row['stale']} of {row['queries']}",
            "share [95%]": f"{row['share']:.2f} [{row['low']:.2f}, {row['high']:.2f}]",
            "against baseline": "-" if row["label"] == baseline else f"{row['fewer']} better, {row['more']} worse",
            "most often": _most_often(row["entries"]),
        }
        for row in record.get("stale", ())
    ]


def _most_often(entries: Mapping[str, list[str]]) -> str:
    shown = sorted(id_ for ids in entries.values() for id_ in ids)
    return max(shown, key=shown.count, default="-")


def agreement(record: ResultsDocument) -> Rows:
    """How far the lists agree with the baseline's, where there are no labels."""
    pairs = record.get("agreement", [])
    name = record["baseline"] if "baseline" in record else (record.get("current") or {}).get("label")
    return [
        {
            f"against {name}": pair["other"] if pair["one"] == name else pair["one"],
            "RBO": f"{pair['rbo']:.3f}",
            "Jaccard@10": f"{pair['jaccard']:.3f}",
        }
        for pair in [pair for pair in pairs if name in (pair["one"], pair["other"])] or pairs
    ]
