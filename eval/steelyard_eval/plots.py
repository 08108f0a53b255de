"""Figures for notebooks; reports draw their own SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def intervals(rows: Sequence[Mapping[str, Any]], metric: str) -> Figure:
    """Plot a mean with its interval for each configuration, best on top; `rows` are records of one metric."""
    from matplotlib.figure import Figure

    ranked = sorted(rows, key=lambda row: (row["mean"], row["label"]))
    figure = Figure(figsize=(7.5, 0.45 * len(ranked) + 1.2), layout="constrained")
    axes = figure.subplots()
    for at, row in enumerate(ranked):
        axes.plot([row["low"], row["high"]], [at, at], color="0.55", linewidth=2, solid_capstyle="round")
        axes.plot([row["mean"]], [at], "o", color="tab:blue")
    axes.set_yticks(range(len(ranked)), [_short(str(row["label"])) for row in ranked])
    axes.set_xlabel(f"{metric}, mean and 95% interval")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    return figure


def changes(rows: Sequence[Mapping[str, Any]], budget: float) -> Figure:
    """Plot the change of every contender with its interval, and the drop that is accepted as a dashed line."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 0.45 * len(rows) + 1.4), layout="constrained")
    axes = figure.subplots()
    colours = {"pass": "tab:green", "fail": "tab:red", "inconclusive": "tab:orange"}
    for at, row in enumerate(reversed(rows)):
        axes.plot([row["low"], row["high"]], [at, at], color="0.55", linewidth=2, solid_capstyle="round")
        axes.plot([row["delta"]], [at], "o", color=colours[row["verdict"]])
    axes.axvline(0, color="0.7")
    axes.axvline(-budget, color="0.4", linestyle="--")
    axes.set_yticks(range(len(rows)), [_short(str(row["label"])) for row in reversed(rows)])
    axes.set_xlabel("change of nDCG@10 since the baseline, 95% interval; dashed: the budget")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    return figure


def _short(label: str, width: int = 48) -> str:
    """Cut a label to `width`, and escape dollar signs, which would start a formula."""
    printable = "".join(char if char.isprintable() else "?" for char in label)
    cut = printable if len(printable) <= width else printable[: width - 3] + "..."
    return cut.replace("$", r"\$")


def curve(points: Sequence[Mapping[str, float]], objective: str, label: str) -> Figure:
    """Plot the objective along one weight; `points` have the weight and the value."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot([point["weight"] for point in points], [point["value"] for point in points], drawstyle="steps-mid")
    axes.set_xlabel(label)
    axes.set_ylabel(objective)
    axes.grid(color="0.9")
    return figure


def rates(acts: Mapping[str, Any]) -> Figure:
    """Plot how often relevant entries and others are acted upon, by place."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.subplots()
    for name, label in (("relevant", "relevant entries"), ("other", "other entries")):
        axes.plot(range(1, len(acts[name]) + 1), acts[name], marker="o", label=label)
    axes.set_xlabel("place")
    axes.set_ylabel("acts per show")
    axes.set_ylim(bottom=0)
    axes.legend()
    axes.grid(color="0.9")
    return figure


def contributions(rows: Sequence[tuple[str, Mapping[str, float]]], title: str) -> Figure:
    """Plot a bar for each entry, best on top, with a part for what each signal adds to its score."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 0.35 * len(rows) + 1.4), layout="constrained")
    axes = figure.subplots()
    left = [0.0] * len(rows)
    for name in dict.fromkeys(name for _, own in rows for name in own):
        widths = [own.get(name, 0.0) for _, own in rows]
        axes.barh(range(len(rows)), widths, left=left, label=_short(name))
        left = [before + width for before, width in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(rows)), [_short(label) for label, _ in rows])
    axes.invert_yaxis()
    axes.set_xlabel("score")
    axes.set_title(_short(title, 80), fontsize="medium")
    if any(own for _, own in rows):
        axes.legend(fontsize="small")
    return figure


def counts(numbers: Sequence[int], label: str) -> Figure:
    """Plot how often each whole number occurs."""
    from collections import Counter

    from matplotlib.figure import Figure

    found = sorted(Counter(numbers).items())
    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.subplots()
    axes.bar([number for number, _ in found], [count for _, count in found])
    axes.set_xlabel(label)
    axes.set_ylabel("queries")
    return figure
