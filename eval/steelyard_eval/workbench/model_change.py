"""May the embedding model be changed? Each model with weights of its own, tuned out of fold, on the same queries.

A model alone says little: what it gains alone is mostly lost where keywords are fused with it, and weights that
were tuned for one model are wrong for another. So one strategy is tuned for both, and every query is measured
under weights that were chosen without it.
"""

from steelyard.base.errors import ConfigError
from steelyard_eval.choose.recommend import Recommendation, recommend
from steelyard_eval.common.configurations import split_contenders
from steelyard_eval.compare.answer import answer
from steelyard_eval.compare.contenders import Given
from steelyard_eval.datasets import Dataset, tuning_queries
from steelyard_eval.datasets.groups import judged, unit_numbers
from steelyard_eval.measures.paired import mean_interval, paired
from steelyard_eval.recording.next_steps import words_of
from steelyard_eval.result.structs import Decision, Row
from steelyard_eval.result.structs import replace as changed
from steelyard_eval.views.frames import Answered


def compare_models(
    dataset: Dataset, strategy: Given, old: str, new: str, metrics: str = "nDCG@10", seed: int = 0
) -> Answered:
    """Compare one strategy with the vectors of two models, each with weights of its own, tuned out of fold.

    `old` and `new` name embedders, as `Workspace.open` takes them. Returns two rows, named by their models, with
    what their searches cost, and the paired test. Raises ConfigError where the data has no labels, or where both
    are the same model.
    """
    queries, metric = judged(dataset, tuning_queries(dataset)[0]), split_contenders(metrics)[0]
    if len(queries) < 2:
        raise ConfigError(f"{dataset.called}: comparing two models needs labelled queries; label some")
    sides = [
        recommend(dataset.embedded_by(name), only=strategy, metric=metric, embedder=name, seed=seed, timed=True)
        for name in (old, new)
    ]
    names = [side.result.provenance.model or "none" for side in sides]
    if names[0] == names[1]:
        raise ConfigError(f"{old} and {new} are the same vectors ({names[0]}); name two models")
    units, (before, after) = unit_numbers(queries).tolist(), [side.out_of_fold for side in sides]
    test = paired({names[1]: after}, before, units, seed=seed)[names[1]]
    made = [_row(side, name, metric, units) for side, name in zip(sides, names, strict=True)]
    rows = [made[0], changed(made[1], against=test)]
    told = answer(rows, names[0], metric, dataset, {}, {}, queries=len(queries), model=names[1])
    base = sides[0].result
    words = words_of("compare", dataset, str(strategy), options={"--embedder": old})
    words += ["--embedder", new] if words else []
    about = changed(base.provenance, command=words, baseline=names[0], metrics=[metric], candidates=None)
    about = changed(about, model=" and ".join(names))
    result = changed(base, kind="compare", answer=told, provenance=about, rows=rows, decision=None, tables=[])
    values = {name: {metric: side.out_of_fold} for name, side in zip(names, sides, strict=True)}
    return Answered(changed(result, queries=[], entries={}, notices=base.notices), values)


def _row(side: Recommendation, name: str, metric: str, units: list[int]) -> Row:
    """The strategy as it is tuned on all queries, with its value out of fold."""
    rows = {row.label: row for row in side.result.rows}
    decision = side.result.decision or Decision("keep")
    shown = rows[decision.chosen or side.result.provenance.baseline]
    means = {metric: mean_interval(side.out_of_fold, units).shown(0.0)}
    return changed(shown, label=name, means=means, against=None, gain=None, tuned=False)
