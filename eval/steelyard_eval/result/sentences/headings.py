"""The headings of tables and columns, the legends below them, and the texts of pages and figures, by key.

headings.json has them, as templates. Of a table KEY its title is ``title_KEY``; what explains a table or a column
stands under ``legend_KEY``.
"""

from pathlib import Path
from typing import Any

from steelyard.base.files import STRICT_JSON

CHOSEN, TODAY, BASELINE, TUNED = "chosen", "today", "baseline", "in-sample"
"""How tables mark rows: of what was chosen, of what is used today or others are tested against, of what was tuned."""
_READ: dict[str, Any] = STRICT_JSON.decode(Path(__file__).with_name("headings.json").read_text("utf-8"))

HEADINGS: dict[str, str] = _READ["headings"]
"""Titles, columns, legends, axes, notes, by key; those of pages of a report, of LaTeX, of gate and learn, too."""
DETAILS = frozenset(_READ["details"])
"""Tables that a report has, and that are too much for a terminal."""
VERDICTS: dict[str, str] = _READ["verdicts"]
"""The verdicts of a test in words."""
CELLS: dict[str, str] = _READ["cells"]
"""How the cells of a column look, where numbers have not three decimals."""
METHOD: dict[str, str] = _READ["method"]
"""How it was measured, by the terms of a report; a term without a fact that it names is left out."""
GLOSSARY: dict[str, str] = _READ["glossary"]
"""What columns mean, by their keys, in words for people who dislike statistics."""
