"""A strategy with its weights as an estimator of scikit-learn, for its cross-validation and searches."""

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from steelyard.base.arrays import Floats, Ints
from steelyard.config import SearchConfig
from steelyard.fusion import fuse
from steelyard_eval.candidates.families import ALONE
from steelyard_eval.candidates.grid import LabelScorer
from steelyard_eval.candidates.signal_frame import ENTRY, QUERY, recorded, values_by_query
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare.list_recording import names_list
from steelyard_eval.measures.metrics import Measure, parse_measures


class FusionTuner(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The weights of one strategy that are best on average over labelled queries.

    X and y are those of `Workbench.signal_frame`: a DataFrame with the columns query, entry (for ties; it may be
    missing) and one for each list, NaN where the list does not have the entry; grades from 0. The columns of an
    array are the query, then lists x1, x2 and so on. Split by groups, so that queries stay whole.

    Parameters
    ----------
    strategy: Over the lists of X (default: rrf of all). Its settings, such as k, stay as written.
    metric: Metric to choose by, and that `score` returns, by its name in ir_measures.

    Examples
    --------
    >>> X = pd.DataFrame({"query": [1, 1, 2, 2], "a": [0.9, 0.1, 0.8, 0.3], "b": [0.1, 0.2, 0.3, 0.9]})
    >>> tuner = FusionTuner("weighted_sum(0.5*a, 0.5*b, normalize=max)").fit(X, [0, 1, 0, 1])
    >>> tuner.strategy_, tuner.score(X, [0, 1, 0, 1])
    ('weighted_sum(0.001*a, 0.999*b, normalize=max)', 1.0)
    """

    def __init__(self, strategy: str | None = None, metric: str = "nDCG@10") -> None:
        self.strategy = strategy
        self.metric = metric

    def fit(self, X: pd.DataFrame | ArrayLike, y: ArrayLike) -> Self:  # noqa: N803 -- as scikit-learn calls it
        """Choose `strategy_`; ConfigError for an unusable strategy or metric, ValueError for X or y."""
        frame, grades = self._checked(X, y, reset=True)
        measure, config = self._config(frame, self.strategy)
        known, _ = recorded(frame, config, grades)
        grid = LabelScorer(measure).grid(known, [config], ALONE)
        self.strategy_ = str(grid.config(int(np.argmax(grid.steadier.mean(axis=1)))).strategy)
        return self

    def predict(self, X: pd.DataFrame | ArrayLike) -> Floats:  # noqa: N803 -- as above
        """The score of each row, float64[N]; -inf where no list of the strategy has the entry."""
        frame, _ = self._checked(X)
        _, config = self._config(frame, self.strategy_)
        known, order = recorded(frame, config)
        scores = np.empty(len(frame))
        scores[order] = fuse(known.table, config.effective)
        return np.where(np.isnan(scores), -np.inf, scores)

    def score(self, X: pd.DataFrame | ArrayLike, y: ArrayLike) -> float:  # noqa: N803 -- as above
        """The mean of the metric over the queries of X."""
        frame, grades = self._checked(X, y)
        measure, config = self._config(frame, self.strategy_)
        return float(np.mean([*values_by_query(frame, grades, config, measure).values()]))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.input_tags.allow_nan = True
        return tags

    def _config(self, frame: pd.DataFrame, strategy: str | None) -> tuple[Measure, SearchConfig]:
        (measure,) = parse_measures([self.metric])
        lists = tuple(name for name in frame.columns if name not in (QUERY, ENTRY) and names_list(name))
        if not lists:
            raise ValueError(f"X has {self.n_features_in_} feature(s) and no list; add a column for each list")
        return measure, Setting(measure.places, lists=lists).strategy(strategy or f"rrf({', '.join(lists)})")

    def _checked(self, X: Any, y: Any = None, *, reset: bool = False) -> tuple[pd.DataFrame, Ints]:  # noqa: ANN401, N803 -- anything
        """X as a frame, and y as grades; ValueError for what is neither."""
        if not reset:
            check_is_fitted(self)
        numbers = {"dtype": float, "ensure_all_finite": "allow-nan"}
        if isinstance(X, pd.DataFrame):
            frame = validate_data(self, X, "no_validation", reset=reset, skip_check_array=True)
            if QUERY not in X or X[QUERY].isna().any():
                raise ValueError(f"X needs a column {QUERY!r} with the query of each row; fill it")
            check_array(X.drop(columns=[QUERY, ENTRY], errors="ignore"), **numbers)
        else:
            array = validate_data(self, X, "no_validation", reset=reset, **numbers)
            frame = pd.DataFrame(array, columns=[QUERY, *(f"x{i}" for i in range(1, array.shape[1]))])
        if y is None and not reset:
            return frame, np.zeros(0, np.int64)
        grades = check_array(column_or_1d(y), ensure_2d=False, dtype=float)
        check_consistent_length(frame, grades)
        if (odd := grades[(grades < 0) | (grades != np.rint(grades))]).size:
            raise ValueError(f"y has {odd[0]:g}; a grade is a whole number from 0 (not relevant)")
        return frame, grades.astype(np.int64)
