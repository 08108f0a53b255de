"""The canvas of every figure: as wide as a column of print, legible on a phone and in grey, and figures as SVG.

Colours suit colour-blind readers and differ in lightness; marks, lines and hatches repeat what colours show. What
a chart draws one after the other without naming a colour is in `steelyard.mplstyle`. On a page colours follow the
reader's scheme, and a figure names nothing outside the page.
"""

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from markupsafe import Markup

from steelyard.base.errors import visible
from steelyard_eval.common.formatting import clip, columns_of
from steelyard_eval.common.tabular import Axes, Figure

WIDTH = 3.5  # inches: a column of the proceedings of SIGIR, a phone at 96 pixels an inch
AXIS = 2.6  # inches that the name of an axis may take, below its middle
SMALL = 7.5  # points: the size of what is written inside a figure


@contextmanager
def drawing(
    height: float, left: float = 0.62, below: float = 0.44, above: float = 0.12
) -> Iterator[tuple[Figure, Axes]]:
    """A figure of this height with axes inside these margins, all in inches; nothing global is changed."""
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(WIDTH, height))
        axes = figure.add_axes(
            (left / WIDTH, below / height, 1 - (left + 0.1) / WIDTH, 1 - (below + above) / height)
        )
        yield figure, axes


@contextmanager
def styled() -> Iterator[None]:
    """Our style: for drawing, and for saving, which reads it again."""
    from matplotlib import rc_context

    with rc_context(_style()):
        yield


@cache
def _style() -> Any:  # noqa: ANN401 -- settings by name, for which matplotlib has a type of its own
    from matplotlib import rc_params_from_file
    from matplotlib.font_manager import fontManager

    file = str(resources.files("steelyard_eval.views.drawing").joinpath("steelyard.mplstyle"))
    style = dict(rc_params_from_file(file, use_default_template=False))
    first, *others = style["font.family"]
    return style | {"font.family": [first, *(font for font in others if font in fontManager.get_font_names())]}


def short(label: str, width: int = 48) -> str:
    """Cut a label to `width`, and escape dollar signs, which would start a formula."""
    return clip(label, width).replace("$", r"\$")


@cache
def inches(text: str) -> float:
    """How wide a text is in our font, which is wide; no other font that is here counts."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    # in place of other alphabets, of which it may have no glyph
    known = re.sub("[^\\0-\u058f\u2000-\u24ff]+", lambda other: "W" * columns_of(other[0]), text)
    wide, _, _ = text_to_path.get_text_width_height_descent(known, FontProperties(size=SMALL), ismath=False)
    return float(wide) / 72


def fitted(text: str, room: float) -> str:
    """A text cut to as many inches, an ellipsis at the cut."""
    most = columns_of(shown := visible(text))
    while most > 1 and inches(shown) > room:
        most -= 1
        shown = clip(text, most)
    return shown.replace("$", r"\$")


def thin_ticks(axes: Axes, most: int = 5, *, integer: bool = False) -> None:
    """Few enough ticks that their labels stand apart, and none so near an end that its label leaves the figure."""
    from matplotlib.ticker import MaxNLocator

    low, high = axes.get_xlim()
    room = 0.03 * (high - low)
    ticks = MaxNLocator(most, steps=[1, 2, 5, 10], integer=integer).tick_values(low, high)
    axes.set_xticks([tick for tick in ticks if low + room <= tick <= high - room or tick == low == 0])
    axes.set_xlim(low, high)


LINE, GOOD, BAD = "#0b4f8a", "#2f9e77", "#d98200"
INK, FAINT, SOFT, BAND, PAPER = "#4d4d4d", "#6e6e6e", "#8c8c8c", "#ededed", "#ffffff"
MARKS = {"filled": ("o", LINE), "hollow": ("o", PAPER), "cross": ("X", BAD), "choice": ("D", LINE)}
CSS_NAMES = {
    LINE: "accent", GOOD: "good", BAD: "s1", INK: "soft", FAINT: "soft", SOFT: "soft", BAND: "plotband",
    PAPER: "paper", "#e3e3e3": "line", "#1a1a1a": "ink",
}  # fmt: skip


_DROPPED = re.compile(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</defs>|<!--.*?-->", re.DOTALL)
_OPEN = re.compile(r"^.*?<svg[^>]*?viewBox=\"([-0-9. ]+)\"[^>]*>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")  # Texts have no angle brackets: matplotlib escapes them
_ALONE = re.compile(r"<g>\n(<(?:path|use)[^>]*/>|<text[^>]*>[^<]*</text>)\n</g>")
_WITHIN = (
    (re.compile(r"font: (?:[a-z]+ )*?(bold |700 )?([0-9.]+)px [^;\"]*"), r"\1font-size: \2px"),
    (re.compile(r"; font-family: [^;\"]*"), ""),
    (re.compile(r' transform="rotate\(-?0 [^"]*"'), ""),
    (re.compile(r"(\d\.\d)\d+"), r"\1"),
    (re.compile(r"\s*\n"), ""),
    (re.compile("xlink:href"), "href"),
)
"""Fonts are the page's, and a tenth of a point is finer than anybody sees."""


@dataclass(frozen=True)
class Chart:
    """A drawing for a page; `title` is what it shows, in a sentence for those who cannot see it."""

    title: str
    svg: Markup


def picture(figure: Figure, title: str) -> Chart:
    """The figure as an element; texts are escaped by matplotlib, and stay texts."""
    written = io.StringIO()
    with styled(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # the page has fonts that matplotlib has not
        figure.savefig(written, format="svg", metadata={"Date": None}, facecolor="none")
    text = _DROPPED.sub("", written.getvalue())
    box = _OPEN.match(text)
    if box is None:  # matplotlib always writes one
        raise ValueError("the figure has no box")
    text = text[box.end() :]
    used = frozenset(re.findall(r"#([a-z0-9]+)", text))
    text = re.sub(r"\n\s*", "\n", _TAG.sub(lambda tag: _slimmed(tag[0], used), text)).replace("<g/>\n", "").strip()
    alone = 1
    while alone:  # groups of one element around one another
        text, alone = _ALONE.subn(r"\1", text)
    return Chart(title, Markup(f'<svg viewBox="{box[1]}" aria-hidden="true">\n{text}'))  # noqa: S704 -- matplotlib's own, its texts escaped


def _slimmed(tag: str, used: frozenset[str]) -> str:
    for pattern, replacement in _WITHIN:
        tag = pattern.sub(replacement, tag)
    tag = re.sub(r' id="([^"]*)"', lambda match: match[0] if match[1] in used else "", tag)
    return re.sub(
        "#[0-9a-f]{6}", lambda match: f"var(--{CSS_NAMES[match[0]]})" if match[0] in CSS_NAMES else match[0], tag
    )
