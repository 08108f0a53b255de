"""The labels of a language model in `recommend`: a second measurement, which a person's labels correct.

They are of queries that a person has judged, where they show how far the model is off, and of others, where they
tell what the person's few queries do not. A model that is wrong adds no bias (`decide.prediction_powered`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.memory.query import Query
from steelyard_eval.candidates.candidates import CandidateSet, record_all
from steelyard_eval.candidates.source import Source
from steelyard_eval.choose.second_measurement import SecondMeasurement
from steelyard_eval.choose.without_labels import FEWEST
from steelyard_eval.datasets.dataset import LOGGED
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.metrics import Measure

WHOLE = 10
"""Judged pairs from which on a query counts as judged: the first ten that one search shows."""


@dataclass(frozen=True)
class ModelLabels:
    """What a model has judged, and whether it may count.

    Attributes
    ----------
    path : the file, as it was named.
    qrels : query -> entry -> grade.
    agreement : how far it agrees with the person, as a JSON document; `counts` says whether it may count.
    sentence : the same in words.
    """

    path: str
    qrels: Mapping[str, Mapping[str, int]]
    agreement: Mapping[str, object]
    sentence: str

    def measured(
        self,
        source: Source,
        labelled: Sequence[Query],
        laid: CandidateSet,
        used: SearchConfig | None,
        metric: Measure,
    ) -> SecondMeasurement | None:
        """The differences of the candidates to what is used, by these labels; None where they may not count.

        At least `FEWEST` of the `labelled` queries have to be among those that it judged, and two others. Raises
        ConfigError for a recording and for lists, which have nothing of the other queries.
        """
        if source.space is None or used is None:
            raise ConfigError(
                "labels of a model need live search and a configuration as --current; leave out --model-labels"
            )
        if not self.agreement["counts"] or source.dataset.sampled == "duel":
            return None
        asked = [query for query in source.dataset.queries if self._judged(query)]
        number = {query.id: i for i, query in enumerate(labelled)}
        rows = np.flatnonzero([query.id in number for query in asked])
        if len(rows) < FEWEST:
            return None
        recordings = record_all(source, asked, laid.starts, self.qrels)
        layout = replace(laid, recordings=recordings)
        values = laid.grid.again(layout.served, metric)
        base = layout.values(used, [metric])[metric].astype(np.float32)
        places = np.array([number[asked[row].id] for row in rows.tolist()], dtype=np.int64)
        return SecondMeasurement.of(values - base, places, rows, unit_numbers(asked))

    def _judged(self, query: Query) -> bool:
        return query.answerable and query.split != LOGGED and len(self.qrels.get(query.id, ())) >= WHOLE
