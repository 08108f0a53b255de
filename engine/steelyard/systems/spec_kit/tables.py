"""The words that system-spec-kit's two programs hold, and those of the document's table of intents (`words.json`).

Sources: the code of 8f561032 (TypeScript) and 04a827ec (JavaScript).
"""

from __future__ import annotations

from importlib import resources
from typing import Any

from steelyard.base.files import STRICT_JSON

WORDS: dict[str, Any] = STRICT_JSON.decode(resources.files(__package__).joinpath("words.json").read_text("utf-8"))


def table(name: str) -> dict[str, tuple[str, ...]]:
    """The lists of a table by name."""
    return {key: tuple(words) for key, words in WORDS[name].items()}


FLAT = table("keywords_typescript")
"""The TypeScript code's keywords of each intent."""
PRIMARY, SECONDARY = table("keywords_javascript_primary"), table("keywords_javascript_secondary")
"""Primary and secondary keywords of the JavaScript code."""
PATTERNS, PATTERNS_JS = table("patterns_typescript"), table("patterns_javascript")
"""The patterns of both codes, whatever the case."""
AGAINST_UNDERSTAND = tuple(WORDS["patterns_against_understand"])
"""Patterns of the TypeScript code: one that speaks against understanding leaves 0.3 of its score."""
