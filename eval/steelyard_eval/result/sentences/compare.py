"""The sentences of compare."""

from __future__ import annotations

SENTENCES: dict[str, str] = {}
