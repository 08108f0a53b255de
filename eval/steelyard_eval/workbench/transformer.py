"""A configuration as a transformer of PyTerrier, so that it stands in pipelines and experiments beside others."""

from itertools import pairwise

from steelyard.base.errors import ConfigError, quote
from steelyard_eval.common.tabular import Frame, as_frame
from steelyard_eval.compare.contenders import Given
from steelyard_eval.workbench.workbench import Workbench

try:
    from pyterrier import Transformer
except ImportError:  # by its documented contract: an object with `transform`, which can be called
    Transformer = object


class SteelyardTransformer(Transformer):  # type: ignore[misc]  # PyTerrier has no types
    """Queries (qid, query) to results: qid, query, docno, score, and rank from 0.

    A query of the data set, known by its id and text, is asked with its filters and its recorded vector.

    Parameters
    ----------
    data: What is searched.
    config: A system, a strategy or a weights file.
    limit: How many results a query; 1000, as PyTerrier has it.
    """

    def __init__(self, data: Workbench, config: Given = "echovault", *, limit: int = 1000) -> None:
        super().__init__()
        self.search = data.searcher(config, limit=limit)
        self.known = {query.id: query for query in data.dataset.queries}
        self.name = str(config)

    def __repr__(self) -> str:
        return f"SteelyardTransformer({self.name})"

    def __call__(self, topics: Frame) -> Frame:
        """As `transform`."""
        return self.transform(topics)

    def transform(self, topics: Frame) -> Frame:
        """See the class; ConfigError for a table without qid and query."""
        if not {"qid", "query"} <= {*topics.columns}:
            raise ConfigError(f"the table needs the columns qid and query; it has {quote(list(topics.columns))}")
        rows = []
        for qid, text in zip(topics["qid"].astype(str), topics["query"].astype(str), strict=True):
            known = self.known.get(qid)
            asked = qid if known is not None and known.text == text else text
            hits = self.search(asked).hits
            scores = [hit.score for hit in hits]
            falling = None not in scores and all(a > b for a, b in pairwise(scores))  # type: ignore[operator]  # no None
            for rank, hit in enumerate(hits):  # what reads the table may sort it by score, and must get our order
                score = hit.score if falling else float(len(hits) - rank)
                rows.append({"qid": qid, "query": text, "docno": hit.entry.id, "score": score, "rank": rank})
        return as_frame(rows, ["qid", "query", "docno", "score", "rank"])


as_transformer = SteelyardTransformer
