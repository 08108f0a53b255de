"""Sentences that several verbs say: notices on data, steps that any of them may advise."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "told": "{text}",  # by a data set, an endpoint, the engine
}
