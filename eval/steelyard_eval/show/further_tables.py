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
    "Queries whose list shows an old entry with nothing above it that took its place; fewer is better. More, "
    "fewer: queries where this is so and not in the baseline's list, and the other way round."
)
LAYERED = (
    "How far each layered search went: queries with an abstract near enough, and those that needed all details."
)


def tables(record: ResultsDocument) -> list[tuple[str, Rows]]:
    """Of silence, stale entries and layers, where there is anything: what the columns mean, and the rows."""
    found = ((SILENCE, silence(record)), (STALE, stale(record)), (LAYERED, layers(record)))
    return [(text, rows) for text, rows in found if rows]


def layers(record: ResultsDocument) -> Rows:
    """How far each layered search went, and how long its layers took where that was measured."""
    timing = {row["label"]: row for row in record.get("timing", ())}
    return [
        {
            "layered search": one["label"],
            "queries": str(one["queries"]),
            "at threshold": str(one["at_threshold"]),
            "lower step": str(sum(one["relaxed"].values())),
            "all details": str(one["full_search"]),
            "no result": str(one["without_result"]),
            "L0, L1, L2 found": ", ".join(f"{one['hit_rates'][layer]:.0%}" for layer in LAYERS),
            "p50 ms L0, L1, L2, all": _milliseconds(timing.get(one["label"], {}), "p50_ms"),
            "p99 ms L0, L1, L2, all": _milliseconds(timing.get(one["label"], {}), "p99_ms"),
        }
        for one in record.get("layers", ())
    ]


def _milliseconds(took: TimingRecord, name: str) -> str:
    """One percentile of each layer and of the whole search; a dash where it was not measured."""
    layered = took.get("layers", {})
    found = [layered.get(layer, {}).get(name) for layer in LAYERS] + [took.get(name)]
    return ", ".join("-" if value is None else f"{value:.2f}" for value in found)


def silence(record: ResultsDocument) -> Rows:
    """What contenders show and keep silent about, where floors or questions without an answer ask for it."""
    return [
        {
            "what is shown": one["label"],
            "answered": str(one["answered"]),
            "silenced": str(one["silenced"]),
            "words a query": f"{one['words']:.0f}",
            "words saved": f"{one['saved']:.0%}" if "lost" in one else "-",
            "relevant lost": f"{one['lost']:.1%}" if "lost" in one else "-",
            "false answers": f"{one['false_answers']} of {one['none']}" if "none" in one else "-",
            "their share [95%]": f"[{one['low']:.2f}, {one['high']:.2f}]" if "none" in one else "-",
        }
        for one in record.get("silence", ())
    ]


def other_floors(record: ResultsDocument) -> Rows:
    """What other floors of the same contenders would lose, answer and show: risk against coverage."""
    return [
        {
            "floor of": one["label"],
            "floor": f"{point['floor']:.4f}",
            "lost": f"{point['lost']:.1%}",
            "questions answered": f"{point['answered']:.0%}",
            "words left": f"{point['words']:.0%}",
        }
        for one in record.get("silence", ())
        for point in one.get("curve", ())[::EVERY]
    ]


def stale(record: ResultsDocument) -> Rows:
    """How often lists show what was replaced or has expired above what took its place."""
    return [
        {
            "stale above current": one["label"],
            "queries": f"{one['stale']} of {one['queries']}",
            "share [95%]": f"{one['share']:.2f} [{one['low']:.2f}, {one['high']:.2f}]",
            "more than the baseline": str(one["more"]),
            "fewer": str(one["fewer"]),
            "most often": _most_often(one["entries"]),
        }
        for one in record.get("stale", ())
    ]


def _most_often(entries: Mapping[str, list[str]]) -> str:
    shown = sorted(id_ for ids in entries.values() for id_ in ids)
    return max(shown, key=shown.count, default="-")
