"""Figures for notebooks; reports draw their own SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def intervals(rows: Sequence[Mapping[str, Any]], metric: str) -> Figure:
    """A point and its interval a configuration, best on top; `rows` are tidy records of one metric."""
    from matplotlib.figure import Figure

    ranked = sorted(rows, key=lambda row: (row["mean"], row["label"]))
    figure = Figure(figsize=(7.5, 0.45 * len(ranked) + 1.2), layout="constrained")
    axes = figure.subplots()
    for at, row in enumerate(ranked):
        axes.plot([row["low"], row["high"]], [at, at], color="0.55", linewidth=2, solid_capstyle="round")
        axes.plot([row["mean"]], [at], "o", color="tab:blue")
    # A dollar sign in a label would start a formula.
    axes.set_yticks(range(len(ranked)), [_short(str(row["label"])).replace("$", r"\$") for row in ranked])
    axes.set_xlabel(f"{metric}, mean and 95% interval")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    return figure


def _short(label: str, width: int = 48) -> str:
    printable = "".join(char if char.isprintable() else "?" for char in label)
    return printable if len(printable) <= width else printable[: width - 3] + "..."


def curve(points: Sequence[Mapping[str, float]], objective: str, label: str) -> Figure:
    """The objective along one weight; `points` hold weight and value."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot([point["weight"] for point in points], [point["value"] for point in points], drawstyle="steps-mid")
    axes.set_xlabel(label)
    axes.set_ylabel(objective)
    axes.grid(color="0.9")
    return figure
