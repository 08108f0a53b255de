"""Figures for notebooks, in one style; reports draw their own SVG.

The colours of `steelyard.mplstyle` suit colour-blind readers and differ in lightness, and marks, lines and hatches
repeat what colours show, so that every figure can be read in grey.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Record = Mapping[str, Any]
MARGIN = 0.02
"""Differences within it do not matter; see `steelyard_eval.measures.statistics`."""
LINE, GOOD, BAD, SOFT = "#0b4f8a", "#2f9e77", "#d98200", "0.55"
HATCHES = ("", "///", "...", "xx", "\\\\\\", "++", "oo", "--")


@contextmanager
def drawing(width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    """A figure of this size in inches with axes, in our style; nothing global is changed."""
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(str(resources.files("steelyard_eval.show").joinpath("steelyard.mplstyle"))):
        figure = Figure(figsize=(width, height))
        yield figure, figure.subplots()


def short(label: str, width: int = 48) -> str:
    """Cut a label to `width`, and escape dollar signs, which would start a formula."""
    printable = "".join(char if char.isprintable() else "?" for char in label)
    cut = printable if len(printable) <= width else printable[: width - 3] + "..."
    return cut.replace("$", r"\$")


def intervals(rows: Sequence[Record], metric: str) -> Figure:
    """Plot a mean with its interval for each configuration, best on top; `rows` are records of one metric."""
    ranked = sorted(rows, key=lambda row: (row["mean"], row["label"]))
    with drawing(7.5, 0.45 * len(ranked) + 1.2) as (figure, axes):
        for at, row in enumerate(ranked):
            axes.plot([row["low"], row["high"]], [at, at], color=SOFT, linewidth=2, solid_capstyle="round")
            axes.plot([row["mean"]], [at], "o", color=LINE)
        _labelled(axes, [str(row["label"]) for row in ranked])
        axes.set_xlabel(f"{metric}, mean and 95% interval")
    return figure


def floors(rows: Sequence[Record], chosen: float | None) -> Figure:
    """Plot what each floor loses and shows; `rows` have floor, lost, answered, words, and perhaps false."""
    names = {"lost": "relevant entries lost", "answered": "questions answered", "words": "words shown"}
    names |= {"false": "questions without an answer answered"} if rows and "false" in rows[0] else {}
    with drawing(6.5, 4) as (figure, axes):
        for (name, label), style in zip(names.items(), ("-", "--", ":", "-."), strict=False):
            axes.plot([row["floor"] for row in rows], [row[name] for row in rows], style, label=label)
        if chosen is not None:
            axes.axvline(chosen, color=SOFT, linewidth=1)
        axes.set_xlabel("floor")
        axes.set_ylabel("share")
        axes.legend()
    return figure


def forest(rows: Sequence[Record], axis: str) -> Figure:
    """Plot differences with their intervals around zero, largest on top.

    `rows` have label, delta, low, high and, where it was tested, a verdict: better and worse are filled, what is
    not decided is hollow. The band of differences that do not matter is shaded.
    """
    ranked = sorted(rows, key=lambda row: (row["delta"], row["label"]))
    with drawing(7.5, 0.45 * len(ranked) + 1.2) as (figure, axes):
        axes.axvspan(-MARGIN, MARGIN, color="0.93")
        axes.axvline(0, color="0.3", linewidth=1)
        for at, row in enumerate(ranked):
            decided = row.get("verdict") in ("better", "worse")
            axes.plot([row["low"], row["high"]], [at, at], color=SOFT, linewidth=2, solid_capstyle="round")
            axes.plot([row["delta"]], [at], "o", color=LINE, markerfacecolor=LINE if decided else "white")
        _labelled(axes, [str(row["label"]) for row in ranked])
        axes.set_xlabel(f"{axis} (filled: decided; band: does not matter)")
    return figure


def changes(rows: Sequence[Record], budget: float) -> Figure:
    """Plot the change of every contender of a gate with its interval; dashed is the drop that is accepted.

    Pass is filled, fail a cross, inconclusive hollow.
    """
    marks = {"pass": ("o", LINE), "fail": ("X", BAD), "inconclusive": ("o", "white"), "mismatch": ("o", "white")}
    with drawing(7.5, 0.45 * len(rows) + 1.4) as (figure, axes):
        axes.axvline(0, color="0.3", linewidth=1)
        axes.axvline(-budget, color="0.4", linestyle="--")
        for at, row in enumerate(reversed(rows)):
            mark, fill = marks[row["verdict"]]
            axes.plot([row["low"], row["high"]], [at, at], color=SOFT, linewidth=2, solid_capstyle="round")
            axes.plot([row["delta"]], [at], mark, color=LINE, markerfacecolor=fill, markersize=8)
        _labelled(axes, [str(row["label"]) for row in reversed(rows)])
        axes.set_xlabel("change of nDCG@10 since the baseline, 95% interval; dashed: the budget")
    return figure


def query_differences(differences: Sequence[float], axis: str) -> Figure:
    """Plot one bar for each query, from the largest gain to the largest loss; losses are hatched."""
    ordered = sorted(differences, reverse=True)
    wins, losses = sum(value > 0 for value in ordered), sum(value < 0 for value in ordered)
    with drawing(7.5, 3) as (figure, axes):
        places = range(len(ordered))
        gains, drops = [max(value, 0) for value in ordered], [min(value, 0) for value in ordered]
        axes.bar(places, gains, width=1.0, color=GOOD, label=f"{wins} better")
        axes.bar(places, drops, width=1.0, color=BAD, hatch="///", edgecolor="white", label=f"{losses} worse")
        axes.axhline(0, color="0.3", linewidth=1)
        axes.set_xlabel(f"queries, largest gain first ({len(ordered) - wins - losses} equal)")
        axes.set_ylabel("difference")
        axes.set_title(short(axis, 90))
        axes.legend()
    return figure


def curve(points: Sequence[Record], objective: str, axis: Record | None = None, plateau: object = None) -> Figure:
    """Plot the objective along one weight; `points` have the weight and the value.

    `axis` is that of the document: the signal whose weight it is, and where the current and the chosen weight are.
    """
    axis = axis or {}
    with drawing(6, 3) as (figure, axes):
        match plateau:
            case [int() | float() as low, int() | float() as high]:
                axes.axvspan(low, high, color="0.87", label="plateau of the chosen weight")
        weights, values = [point["weight"] for point in points], [point["value"] for point in points]
        axes.plot(weights, values, drawstyle="steps-mid", color=LINE)
        if axis.get("current") is not None:
            axes.axvline(axis["current"], color="0.3", linestyle="--", label=f"current, {axis['current']:.3g}")
        if axis.get("chosen") is not None:
            axes.axvline(axis["chosen"], color=BAD, label=f"chosen, {axis['chosen']:.3g}")
        others = ", ".join(axis.get("others") or ())
        rest = f" (the rest: {short(others, 50)})" if others else ""
        axes.set_xlabel(f"weight of {short(axis.get('signal') or 'the first signal')}{rest}")
        axes.set_ylabel(objective)
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    return figure


def learning(rows: Sequence[Record], objective: str) -> Figure:
    """Plot what more labels are worth; `rows` have queries, in_sample, held_out, low and high."""
    with drawing(7.5, 3.2) as (figure, axes):
        queries = [row["queries"] for row in rows]
        axes.fill_between(queries, [row["low"] for row in rows], [row["high"] for row in rows], color="0.88")
        inside, outside = ([row[name] for row in rows] for name in ("in_sample", "held_out"))
        axes.plot(queries, inside, "s--", color=BAD, label="on the queries that were chosen on")
        axes.plot(queries, outside, "o-", color=LINE, label="on other queries")
        axes.set_xlabel("labelled queries")
        axes.set_ylabel(objective)
        axes.legend()
    return figure


def ablation(rows: Sequence[Record], objective: str) -> Figure:
    """Plot what each signal is worth, on the queries tuned on and on those held out (with interval)."""
    ranked = sorted(rows, key=lambda row: row["in_sample"])
    with drawing(7.5, 0.5 * len(ranked) + 1.4) as (figure, axes):
        axes.axvline(0, color="0.3", linewidth=1)
        for at, row in enumerate(ranked):
            held = row.get("held_out")
            if held:
                axes.plot([held["low"], held["high"]], [at - 0.12] * 2, color=SOFT, linewidth=2)
                axes.plot(held["value"], at - 0.12, "o", color=LINE, label="held out" if not at else None)
            axes.plot(row["in_sample"], at + 0.12, "s", color=BAD, label="tuned on" if not at else None)
        _labelled(axes, [str(row["signal"]) for row in ranked])
        axes.set_xlabel(f"{objective} with the signal less {objective} without it")
        axes.legend()
    return figure


def cost(rows: Sequence[Record], metric: str, key: str = "p50_ms") -> Figure:
    """Plot quality against latency (or embedding calls), with the front of those that nothing beats in both.

    `rows` have label, mean, p50_ms and embedding_calls.
    """
    from math import inf

    known = sorted((row for row in rows if row.get(key) is not None), key=lambda row: (row[key], -row["mean"]))
    front, best = [], -inf
    for row in known:
        if row["mean"] > best:
            front.append(row)
            best = row["mean"]
    with drawing(7.5, 4) as (figure, axes):
        rest = [row for row in known if row not in front]
        axes.plot(
            [row[key] for row in rest], [row["mean"] for row in rest], "o", color=SOFT, markerfacecolor="white"
        )
        axes.plot([row[key] for row in front], [row["mean"] for row in front], "--", color=LINE)
        for at, row in enumerate(front, 1):
            axes.plot(row[key], row["mean"], "o", color=LINE, label=f"{at} {short(row['label'], 28)}")
            axes.annotate(str(at), (row[key], row["mean"]), (4, 5), textcoords="offset points")
        if key == "p50_ms" and known and known[0][key] > 0:
            axes.set_xscale("log")
            for shown in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
                shown("{x:g}")
        axes.set_xlabel({"p50_ms": "median milliseconds a query", "embedding_calls": "queries embedded"}[key])
        axes.set_ylabel(metric)
        axes.legend(title="front", loc="center left", bbox_to_anchor=(1, 0.5), handlelength=0)
    return figure


def examination(probabilities: Sequence[float], source: str = "") -> Figure:
    """Plot how often each place of a list is examined, relative to the first."""
    with drawing(6, 3) as (figure, axes):
        axes.plot(range(1, len(probabilities) + 1), probabilities, "o-", color=LINE, label=source or None)
        axes.set_xlabel("place")
        axes.set_ylabel("examined, relative to the first")
        axes.set_ylim(0, None)
        if source:
            axes.legend()
    return figure


def rates(acts: Record) -> Figure:
    """Plot how often relevant entries and others are acted upon, by place."""
    with drawing(6, 3) as (figure, axes):
        for name, label, mark in (("relevant", "relevant entries", "o-"), ("other", "other entries", "s--")):
            axes.plot(range(1, len(acts[name]) + 1), acts[name], mark, label=label)
        axes.set_xlabel("place")
        axes.set_ylabel("acts per show")
        axes.set_ylim(bottom=0)
        axes.legend()
    return figure


def contributions(rows: Sequence[tuple[str, Mapping[str, float]]], title: str) -> Figure:
    """Plot a bar for each entry, best on top, with a part for what each signal adds to its score."""
    with drawing(7.5, 0.35 * len(rows) + 1.4) as (figure, axes):
        left = [0.0] * len(rows)
        for at, name in enumerate(dict.fromkeys(name for _, own in rows for name in own)):
            widths = [own.get(name, 0.0) for _, own in rows]
            hatch = HATCHES[at % len(HATCHES)]
            axes.barh(range(len(rows)), widths, left=left, label=short(name), hatch=hatch, edgecolor="white")
            left = [before + width for before, width in zip(left, widths, strict=True)]
        _labelled(axes, [label for label, _ in rows])
        axes.invert_yaxis()
        axes.set_xlabel("score")
        axes.set_title(short(title, 80))
        if any(own for _, own in rows):
            axes.legend()
    return figure


def counts(numbers: Sequence[int], label: str) -> Figure:
    """Plot how often each whole number occurs."""
    from collections import Counter

    found = sorted(Counter(numbers).items())
    with drawing(6, 3) as (figure, axes):
        axes.bar([number for number, _ in found], [count for _, count in found], color=LINE)
        axes.set_xlabel(label)
        axes.set_ylabel("queries")
    return figure


def _labelled(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), [short(label) for label in labels])
    axes.grid(visible=False, axis="y")
