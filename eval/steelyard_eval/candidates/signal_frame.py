"""Recorded signals as learners take them, (X, y, groups), and such an X as a table of the engine again.

The query is a column of X, as in XGBoost's rankers (its `qid`; XGBoost 3, "Learning to Rank"): it stays with its
rows when scikit-learn slices X.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard.base.arrays import Indices, Ints
from steelyard.config import SearchConfig
from steelyard.fusion import fuse, parse_strategy
from steelyard.live.sources import identity
from steelyard.memory.query import Query
from steelyard.retrievers import CANDIDATE_RETRIEVERS, DEPENDENT
from steelyard.table.signal_table import NO_FACTS, SignalTable
from steelyard_eval.candidates.families import telling_facts
from steelyard_eval.candidates.grid import LabelledRecording
from steelyard_eval.common.configurations import USUAL_LIMIT
from steelyard_eval.common.tabular import Frame
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.recording.replay import replay

QUERY, ENTRY = "query", "entry"
SCORERS = ("cosine", "tfidf")  # scorers that every system can have
Framed = tuple[Frame, Ints, Indices]


def signal_frame(
    source: Source, queries: Sequence[Query], limit: int = USUAL_LIMIT, *, combined: bool = False
) -> Framed:
    """X, y int64[N] with the grades, 0 without a label, and groups int64[N], which number what varies together.

    Rows ascend by query and entry. A relevant entry that nothing returned has a row of NaN, because the ideal
    ranking counts it. Retrievers search as deep as for lists of this `limit`. With `combined` there are columns,
    too, that a tree cannot make of others: each list by ranks and on the scale of its query, and sums of all.
    """
    import pandas as pd

    searched, scorers = source.lists or sorted(CANDIDATE_RETRIEVERS | DEPENDENT), () if source.lists else SCORERS
    every = ", ".join(f"1*{name}" for name in (*searched, *scorers))
    setting = source.setting(limit)
    table = source.record_supplied(queries, setting.strategy(f"weighted_sum({every}, normalize=max)"))
    lists = [name for name in searched if np.isfinite(table.columns.get(name, np.nan)).any()]
    ids, entries = [query.id for query in queries], np.array(table.entries, object)
    every_row = np.ones(len(table), dtype=bool)
    columns = {QUERY: np.array(ids, object)[table.query], ENTRY: entries[table.entry]}
    for name in (*lists, *(name for name in scorers if name in table.columns)):
        columns[name] = table.columns[name]
    for text in telling_facts(table).values():
        columns[text] = parse_strategy(text).compile(table, every_row).branches[0].columns[0].values
    for text in _combined(lists) if combined else ():
        columns[text] = fuse(table, parse_strategy(text, lists))
    frame, qrels = pd.DataFrame(columns), source.dataset.qrels
    grades = [(id_, entry, grade) for id_ in ids for entry, grade in qrels.get(id_, {}).items() if grade > 0]
    judged = pd.DataFrame(grades, columns=[QUERY, ENTRY, "grade"])
    frame = frame[frame[lists].notna().any(axis=1)].merge(judged, how="outer", on=[QUERY, ENTRY], sort=True)
    groups = frame[QUERY].map(dict(zip(ids, unit_numbers(queries).tolist(), strict=True)))
    return frame, frame.pop("grade").fillna(0).to_numpy(np.int64), groups.to_numpy(np.int64)


def _combined(lists: Sequence[str]) -> list[str]:
    several = [(name,) for name in lists] + ([tuple(lists)] if len(lists) > 1 else [])
    by_ranks = [f"rrf({', '.join(names)})" for names in several]
    weighted = (", ".join(f"1*{name}" for name in names) for names in several)
    return by_ranks + [f"weighted_sum({terms}, normalize=minmax)" for terms in weighted]


def recorded(
    frame: Frame,
    config: SearchConfig,
    grades: Ints | None = None,
    tokens: Mapping[str, int] | None = None,
) -> tuple[LabelledRecording, Indices]:
    """The lists that a configuration over lists reads in X as a recording, and the row of X of each of its rows.

    Without a column `entry` equal scores keep the order of the rows. ValueError for an entry that a query has
    twice.
    """
    import pandas as pd

    ids = frame[ENTRY] if ENTRY in frame else pd.Series(range(len(frame))).map("{:012}".format)
    query, known_queries = pd.factorize(frame[QUERY].map(str), sort=True)
    entry, known_entries = pd.factorize(ids.map(str), sort=True)  # by code points, as UTF-8's bytes
    queries, entries = known_queries.tolist(), known_entries.tolist()  # an index makes a text each time
    order = np.lexsort((entry, query))
    same = (np.diff(query[order]) == 0) & (np.diff(entry[order]) == 0)
    if same.any():
        twice = order[int(np.argmax(same))]
        raise ValueError(f"query {queries[query[twice]]} has entry {entries[entry[twice]]} twice; keep one row")
    table = SignalTable(
        tuple(queries),
        tuple(entries),
        np.searchsorted(query[order], np.arange(len(queries) + 1)),
        entry[order].astype(np.int32),
        {name: frame[name].to_numpy(np.float64)[order] for name in config.retrievers},
        {},
        NO_FACTS,
        NO_FACTS,
        identity(config),
    )
    qrels: dict[str, dict[str, int]] = {}
    for q, e, grade in (
        zip(query.tolist(), entry.tolist(), grades.tolist(), strict=True) if grades is not None else ()
    ):
        qrels.setdefault(queries[q], {})[entries[e]] = grade
    return LabelledRecording.of(qrels, table, tokens), order


def values_by_query(
    frame: Frame,
    grades: Ints,
    config: SearchConfig,
    measure: Measure,
    tokens: Mapping[str, int] | None = None,
) -> dict[str, float]:
    """The metric of each query of X under a configuration over its lists, by the text of its id."""
    known, _ = recorded(frame, config, grades, tokens)
    values = replay(known.table, config).metrics(known.judgments, [measure])[measure]
    return dict(zip(known.table.queries, values.tolist(), strict=True))
