"""The headings of tables and columns, and the legends below them, by key."""

from __future__ import annotations

HEADINGS: dict[str, str] = {}
