"""The colours of charts, and of the marks in them, in print and on a page.

They suit colour-blind readers and differ in lightness; marks, lines and hatches repeat what colours show. What a
chart draws one after the other without naming a colour is in `steelyard.mplstyle`.
"""

from __future__ import annotations

LINE, GOOD, BAD = "#0b4f8a", "#2f9e77", "#d98200"
INK, FAINT, SOFT, BAND, PAPER = "#4d4d4d", "#6e6e6e", "#8c8c8c", "#ededed", "#ffffff"
MARKS = {"filled": ("o", LINE), "hollow": ("o", PAPER), "cross": ("X", BAD), "choice": ("D", LINE)}
"""How a point looks, and its filling: filled, hollow, a cross, or a diamond for the choice."""
FOLLOWS = {
    LINE: "accent", GOOD: "good", BAD: "s1", INK: "soft", FAINT: "soft", SOFT: "soft", BAND: "plotband",
    PAPER: "paper", "#e3e3e3": "line", "#1a1a1a": "ink",
}  # fmt: skip
"""The colours of the style, and the variables of `report.css` that stand for them."""
