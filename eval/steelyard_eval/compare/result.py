"""The result of a comparison: frames, figures and reports of its document."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError, nearest, shown, visible
from steelyard_eval.common.answer import in_html
from steelyard_eval.common.console import wrapped
from steelyard_eval.common.documents.results import ResultsDocument
from steelyard_eval.common.markup import legible
from steelyard_eval.common.renderers import drawn
from steelyard_eval.common.results import Reported, frame_html
from steelyard_eval.measures.metrics import parse_measures

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Comparison(Reported[ResultsDocument]):
    """The result of a comparison; `record` is the JSON document of the command line.

    `values` has every metric of every query: label -> metric name -> float64[Q], in the order of
    `queries`; `weights` the only weights file, for a kept run.
    """

    TEXT = "comparison_text"

    values: Mapping[str, Mapping[str, Floats]]
    queries: tuple[str, ...]
    weights: Mapping[str, dict[str, object]] = field(default_factory=dict)

    @property
    def notices(self) -> tuple[str, ...]:
        """What to know of the contenders before the numbers are read, such as ids that no entry has."""
        return tuple(self.record["notices"])

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each configuration and metric, with the mean and its interval.

        Without judgments: a row for each pair of contenders, with RBO and Jaccard@10.
        """
        import pandas as pd

        return pd.DataFrame(self.record["results"] or self.record["agreement"])

    def tests(self) -> pd.DataFrame:
        """Return a row for each challenger: its difference from the baseline, interval, p, wins, verdict."""
        import pandas as pd

        frame = pd.DataFrame(self.record["comparisons"]).drop(columns=["baseline", "metric"], errors="ignore")
        return frame.astype({"queries_needed": "Int64"}) if "queries_needed" in frame else frame

    def table(self, round: int | None = None) -> pd.DataFrame:  # noqa: A002 -- the name that PyTerrier and pandas give it
        """Return a row for each contender and a column for each metric, as PyTerrier's Experiment does.

        Beside them are queries won and lost against the baseline on the primary metric, and the corrected p-value.
        `round` is the number of decimals.
        """
        import pandas as pd

        primary = self.record["primary"]
        tests = {row["challenger"]: row for row in self.record["comparisons"]}
        rows = []
        for label, metrics in self.values.items():
            test = tests.get(label)
            signs = {"+": test and test["wins"], "-": test and test["losses"], "p-value": test and test["p_holm"]}
            means = {metric: float(values.mean()) for metric, values in metrics.items()}
            rows.append({"name": label, **means, **{f"{primary} {sign}": value for sign, value in signs.items()}})
        return _rounded(pd.DataFrame(rows).set_index("name"), round)

    def per_query(self, metric: str | None = None, round: int | None = None) -> pd.DataFrame:  # noqa: A002 -- as above
        """Return a row for each query: text, category, and one metric (the primary one) of every contender."""
        import pandas as pd

        wanted = self._compared(metric)
        frame = pd.DataFrame(self.record["per_query"])[["id", "text", "category"]].set_index("id")
        return _rounded(frame.assign(**{label: metrics[wanted] for label, metrics in self.values.items()}), round)

    def _compared(self, metric: str | None) -> str:
        """A metric as it is written, by default the primary one; ConfigError for one that has no values here."""
        wanted, known = (
            str(parse_measures([metric or self.record["primary"]])[0]),
            [*next(iter(self.values.values()))],
        )
        if wanted not in known:
            raise ConfigError(f"metric {shown(wanted)} was not compared{nearest(wanted, known)}")
        return wanted

    def __repr__(self) -> str:
        return visible(f"Comparison({', '.join(self.values)} on {self.record['dataset']['name']})")

    def __str__(self) -> str:
        notes = "\n".join(wrapped(f"note: {notice}") for notice in self.notices)
        return "\n\n".join(filter(None, (super().__str__(), notes)))

    def _repr_html_(self) -> str:
        frame = self.table().reset_index() if self.record["results"] else self.to_frame()
        notes = "".join(f"<p>note: {html.escape(legible(notice))}</p>" for notice in self.notices)
        return f"{in_html(self.record)}{frame_html(frame)}{notes}"

    def plot(self, metric: str | None = None, *, what: str = "means") -> Figure:
        """Plot a figure of the comparison.

        Parameters
        ----------
        metric : str
            Of the means; the primary one by default. All other figures are of the primary metric.
        what : str
            means (with intervals), differences (to the baseline), queries (the difference on each), categories,
            cost (quality against latency).
        """
        if not self.record["results"]:
            name = self.record["dataset"]["name"]
            raise ConfigError(f"{name} has no judgments, so there is nothing to plot; print it, or add qrels.txt")
        return drawn("compared", self.record, what, self._compared(metric))


def _rounded(frame: pd.DataFrame, decimals: int | None) -> pd.DataFrame:
    return frame if decimals is None else frame.round(decimals)
