"""The sentences of gate."""

from __future__ import annotations

SENTENCES: dict[str, str] = {}
