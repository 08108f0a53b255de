"""Sentences that several verbs say: notices on data, steps that any of them may advise."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "interval_holds_zero": "with {tried} tried, its p of {p:number} counts as {p_holm:number} (Holm's correction)"
    ", but the interval holds 0, too",
    "interval_holds_zero_alone": "its p is {p:number}, but the interval holds 0, too",
    "p_proves_nothing": "with {tried} tried, its p of {p:number} counts as {p_holm:number} (Holm's correction)"
    ", and 0.05 or more proves nothing; interval and odds are of it alone",
    "p_proves_nothing_alone": "its p is {p:number}, and 0.05 or more proves nothing",
    "told": "{text}",  # by a data set, an endpoint, the engine
}
