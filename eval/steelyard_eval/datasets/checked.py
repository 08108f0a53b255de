"""The result of a check without faults: counts and notices."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard_eval.common.tabular import Tabular, frame_html
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.labels import in_words, stated, unstated

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Checked(Tabular):
    """The counts and notices of a data set without faults."""

    dataset: Dataset

    @property
    def notices(self) -> tuple[str, ...]:
        """The notices, one line with a count for each kind."""
        dataset = self.dataset
        return (
            *dataset.notices,
            *(unstated(dataset.sampled, dataset.pool, dataset.provenance) if dataset.qrels else ()),
        )

    def to_json(self) -> dict[str, Any]:
        """The document of `steelyard check --json`."""
        dataset = self.dataset
        return {
            "faults": [],
            "notices": list(self.notices),
            "name": dataset.name,
            "entries": len(dataset.entries),
            "queries": len(dataset.queries),
            "sha256": dataset.sha256,
            **stated(dataset.sampled, dataset.pool),
            **({"provenance": [one.to_json() for one in dataset.provenance]} if dataset.provenance else {}),
            "vectors": sorted("/".join(key) for key in dataset.vectors),
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each query: id, text, split, group, and numbers of judged and relevant entries."""
        import pandas as pd

        rows = [
            {
                "query": query.id,
                "text": query.text,
                "split": query.split,
                "group": query.group,
                "judged": len(self.dataset.qrels.get(query.id, {})),
                "relevant": sum(grade > 0 for grade in self.dataset.qrels.get(query.id, {}).values()),
            }
            for query in self.dataset.queries
        ]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        return repr(self.dataset).replace("Dataset", "Checked", 1)

    def __str__(self) -> str:
        dataset = self.dataset
        said = in_words(dataset.sampled, dataset.pool, dataset.provenance)
        return "\n".join([*(f"note: {notice}" for notice in self.notices), *said, dataset.told])

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{html.escape(notice)}</li>" for notice in self.notices)
        return f"<p>{html.escape(repr(self.dataset))}</p><ul>{items}</ul>{frame_html(self.to_frame().head(10))}"
