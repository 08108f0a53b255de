"""The sentences of learn."""

from __future__ import annotations

SENTENCES: dict[str, str] = {}
