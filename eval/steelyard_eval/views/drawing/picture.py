"""A figure as SVG inside a page: its colours follow the reader's scheme, and it names nothing outside the page."""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from steelyard_eval.views.drawing.canvas import FOLLOWS, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DROPPED = re.compile(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</defs>|<!--.*?-->", re.DOTALL)
_OPEN = re.compile(r"^.*?<svg[^>]*?viewBox=\"([-0-9. ]+)\"[^>]*>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
"""Texts have no angle brackets: matplotlib escapes them."""
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
    text = re.sub(r"\n\s*", "\n", _TAG.sub(lambda tag: _tag(tag[0], used), text)).replace("<g/>\n", "").strip()
    alone = 1
    while alone:  # groups of one element around one another
        text, alone = _ALONE.subn(r"\1", text)
    return Chart(title, Markup(f'<svg viewBox="{box[1]}" aria-hidden="true">\n{text}'))  # noqa: S704 -- matplotlib's own, its texts escaped


def _tag(tag: str, used: frozenset[str]) -> str:
    """A tag without what a page does not need."""
    for pattern, replacement in _WITHIN:
        tag = pattern.sub(replacement, tag)
    tag = re.sub(r' id="([^"]*)"', lambda match: match[0] if match[1] in used else "", tag)
    return re.sub(
        "#[0-9a-f]{6}", lambda match: f"var(--{FOLLOWS[match[0]]})" if match[0] in FOLLOWS else match[0], tag
    )
