"""Finds the place of an entry, or the reason why it is not in the list."""

from __future__ import annotations

import numpy as np

from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.retrievers import RETRIEVERS
from steelyard_eval.explain.document import ListPosition, PlaceRecord
from steelyard_eval.explain.view import ListView, View

Lists = dict[str, ListPosition]


def place(view: View | ListView, query: Query, entry: Entry | None, id_: str, in_scope: bool) -> PlaceRecord:
    """Find an entry: `where` it is, its `rank` if it has one, `why` in words, and its position in all `lists`.

    `where` is listed, dropped (by a finish stage), below_cut, not_in_corpus, out_of_scope, not_ranked,
    beyond_depth or not_returned.
    """
    lists = {} if isinstance(view, ListView) else _lists(view, id_)
    where, why = _where(view, query, entry, id_, in_scope, lists)
    rank = view.listed.get(id_) or view.ranked.get(id_)
    held = [
        _list_words(name, None, listed["position"])
        for name, listed in lists.items()
        if rank and listed["position"]
    ]
    return {"where": where, "rank": rank, "why": "; ".join([why, *held]), "lists": lists}


def _where(
    view: View | ListView, query: Query, entry: Entry | None, id_: str, in_scope: bool, lists: Lists
) -> tuple[str, str]:
    if id_ in view.listed:
        return "listed", f"rank {view.listed[id_]}"
    if id_ in view.ranked:
        return _cut(view, view.ranked[id_])
    if entry is None:
        return "not_in_corpus", "judged, but not in the corpus"
    if not in_scope:
        return "out_of_scope", _outside(query, entry)
    if isinstance(view, ListView):
        return "not_returned", f"not among the {len(view.listed)} that were returned"
    return _unranked(view, lists)


def _cut(view: View | ListView, rank: int) -> tuple[str, str]:
    if rank <= len(view.listed):
        return "dropped", f"rank {rank}, dropped by a finish stage"
    return "below_cut", f"rank {rank}, the list ends at {len(view.listed)}"


def _outside(query: Query, entry: Entry) -> str:
    """The filters that an entry fails, in words; the store has decided that it fails."""
    return "outside the scope: " + ("; ".join(query.filters.failed(entry)) or "the filters exclude it")


def _lists(view: View, id_: str) -> Lists:
    """Its position in the whole list of every retriever that was used, with the configured depth."""
    row = view.rows.get(id_)
    lists: Lists = {}
    for name in sorted(view.asked & RETRIEVERS & view.deep.columns.keys()):
        absent = row is None or bool(np.isnan(view.deep.columns[name][row]))
        position = None if row is None or absent else int(view.deep.positions[name][row])
        lists[name] = {"position": position, "depth": view.config.depths.get(name)}
    return lists


def _unranked(view: View, lists: Lists) -> tuple[str, str]:
    """Whether it was returned and not ranked, returned beyond the depth, or not returned."""
    words = {name: _list_words(name, view.sought(name), listed["position"]) for name, listed in lists.items()}
    early = [name for name, listed in lists.items() if listed["position"] and not too_deep(**listed)]
    late = [name for name, listed in lists.items() if too_deep(**listed)]
    if early:
        return "not_ranked", "; ".join(["found, but not ranked by the strategy", *words.values()])
    return "beyond_depth" if late else "not_returned", "; ".join(words.values())


def too_deep(position: int | None, depth: int | None) -> bool:
    """Whether a place is below the depth to which its list is read, so that it does not count."""
    return position is not None and depth is not None and position > depth


def _list_words(name: str, sought: str | None, position: int | None) -> str:
    if position is None:
        return f"not found by {name}" + (f" (holds none of {sought})" if sought else "")
    return f"place {position} in {name}"
