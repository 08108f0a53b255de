"""The sentences of recommend."""

from __future__ import annotations

SENTENCES: dict[str, str] = {}
