"""Measures of ranked lists: ir_measures' names, trec_eval's values, vectorised over queries.

Linear gain, discount log2(rank + 1), ideal cut at k, relevant from grade 1 on. `evaluate` must equal
pytrec_eval to 1e-9, query by query, on the run that `runs.write_run` wrote.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError, nearest, quote
from steelyard_eval.measures.judgments import UNJUDGED, Ranked, discounts, within
from steelyard_eval.measures.judgments import Judgments as Judgments  # it is read with the measures


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure: its family and its cutoff, None for the whole list; or the `tokens` that a list may take.

    >>> str(Measure("nDCG", 10)), str(Measure("AP", None)), str(Measure("R", tokens=2000))
    ('nDCG@10', 'AP', 'R@2000t')
    """

    family: str
    cutoff: int | None = None
    tokens: int | None = None

    def __str__(self) -> str:
        end = self.cutoff if self.tokens is None else f"{self.tokens}t"
        return self.family if end is None else f"{self.family}@{end}"

    @property
    def places(self) -> int:
        """How long a list has to be where nothing is said: the cutoff, 100 places to fill tokens from, else 10."""
        return self.cutoff or (10 if self.tokens is None else 100)

    @property
    def by_places(self) -> "Measure":
        """The same where what entries take is not known: with a cutoff in the place of tokens."""
        return self if self.tokens is None else Measure(self.family, self.places)

    @property
    def kind(self) -> int:
        """How weight search computes it; ConfigError for one that is no function of the ranks of relevant rows."""
        return self._searched[0]

    def divisor(self, judgments: Judgments) -> Floats:
        """float64[Q]: what weight search divides by, of the ideal DCG and the relevant entries of each query."""
        if self._searched[1] == IDEAL:
            return judgments.ideal_at(self.cutoff)
        if self._searched[1] == RELEVANT:
            return judgments.relevant.astype(np.float64)
        return np.full(len(judgments.relevant), float(self.cutoff or 1))

    def sizes(self, judgments: Judgments) -> Indices:
        """int64[width]: what entries take of a context; ConfigError where their texts are not known."""
        if judgments.tokens is None:
            raise ConfigError(
                f"{self} needs the texts of entries, which are not known here; name a metric of places"
            )
        return judgments.tokens

    @property
    def _searched(self) -> tuple[int, str]:
        if (searched := _FAMILIES[self.family].searched) is None:
            raise ConfigError(f"{self} rewards no ranks, so it cannot guide tuning; name nDCG@10, R@10 or RR@10")
        return searched


@dataclass(frozen=True)
class _Lists:
    """Ranked lists as one dense matrix of grades, with running sums from which every cutoff is read.

    `cumsum` adds from the first rank on, like trec_eval, so a perfect list equals its ideal bit by bit.
    """

    grade: NDArray[np.int32]  # [Q, K], -1 where unjudged or past the end
    length: Indices  # [Q], entries of the whole list
    judgments: Judgments

    @cached_property
    def dcg(self) -> Floats:
        return np.cumsum(np.maximum(self.grade, 0) / discounts(self.grade.shape[1]), axis=1)

    @cached_property
    def hits(self) -> Floats:
        return np.cumsum(self.grade >= 1, axis=1, dtype=np.float64)

    @cached_property
    def precisions(self) -> Floats:
        ranks = np.arange(1, self.grade.shape[1] + 1)
        return np.cumsum(np.where(self.grade >= 1, self.hits / ranks, 0.0), axis=1)


def _at(running: Floats, cutoff: int | None) -> Floats:
    """Return the running sums at the cutoff; the matrix is as wide as the longest list, so it ends them."""
    depth = running.shape[1]
    return running[:, (depth if cutoff is None else min(cutoff, depth)) - 1]


def _share(part: Floats, whole: NDArray[np.number], none: float = 0.0) -> Floats:
    """Divide, with `none` where the whole is 0: nothing relevant, or nothing returned."""
    share = np.full(part.size, none)
    np.divide(part, whole, out=share, where=whole > 0)
    return share


def _recall(lists: _Lists, k: int | None) -> Floats:
    return _share(_at(lists.hits, k), lists.judgments.relevant)


def _success(lists: _Lists, k: int | None) -> Floats:
    return np.asarray(_at(lists.hits, k) > 0, dtype=np.float64)


GAIN, PRECISIONS, HITS, ANY, ALL, FIRST = range(6)
"""What a measure computes from the relevant entries down to its cutoff: their discounted gain, the sum of
precisions at them, or their number, each divided by something; or whether there are any, whether there are as
many as are relevant, or 1 / the rank of the first. Weight search knows these six and no measure."""
IDEAL, RELEVANT, CUTOFF = "ideal DCG", "relevant entries", "cutoff"  # what is divided by


@dataclass(frozen=True, slots=True)
class _Family:
    compute: Callable[[_Lists, int | None], Floats]
    meaning: str  # what reports say of it
    searched: tuple[int, str] | None  # its kind and divisor in weight search; None where it rewards no ranks
    needs_cutoff: bool = True
    alias: str = ""  # another name that ir_measures accepts


_ANY = "is 1 when at least one relevant entry is in the list."
_FAMILIES = {
    "nDCG": _Family(
        lambda lists, k: _share(_at(lists.dcg, k), lists.judgments.ideal_at(k)),
        "is 1 when the most relevant entries come first, and falls the later they come; 0 when none is found.",
        (GAIN, IDEAL),
        needs_cutoff=False,
        alias="NDCG",
    ),
    "R": _Family(
        _recall, "is the share of the relevant entries that is in the list.", (HITS, RELEVANT), alias="Recall"
    ),
    "RR": _Family(
        lambda lists, k: _share(_success(lists, k), np.argmax(lists.grade >= 1, axis=1) + 1),
        "is 1 divided by the place of the first relevant entry.",
        (FIRST, CUTOFF),
        needs_cutoff=False,
        alias="MRR",
    ),
    "AP": _Family(
        lambda lists, k: _share(_at(lists.precisions, k), lists.judgments.relevant),
        "is the mean, over the relevant entries, of the precision at the place of each.",
        (PRECISIONS, RELEVANT),
        needs_cutoff=False,
        alias="MAP",
    ),
    "P": _Family(
        lambda lists, k: _at(lists.hits, k) / (k or 1),
        "is the share of the places that have a relevant entry.",
        (HITS, CUTOFF),
        alias="Precision",
    ),
    "Success": _Family(_success, _ANY, (ANY, CUTOFF)),
    "Judged": _Family(
        lambda lists, k: _share(
            np.count_nonzero(lists.grade[:, :k] != UNJUDGED, axis=1).astype(np.float64),
            lists.length if k is None else np.minimum(lists.length, k),
            np.nan,
        ),
        "is the share of the places that are filled whose entry has a label; what has none is not relevant.",
        None,
    ),
    "RecallAny": _Family(_success, _ANY, (ANY, CUTOFF)),
    "RecallAll": _Family(
        lambda lists, k: np.asarray(_recall(lists, k) == 1.0, dtype=np.float64),
        "is 1 when all relevant entries are in the list.",
        (ALL, RELEVANT),
    ),
}
"""Every family by its name. To add one, write its formula above and its declaration here."""
_ALIASES = {family.alias: name for name, family in _FAMILIES.items() if family.alias}
_FOLDED = {name.casefold(): _ALIASES.get(name, name) for name in (*_FAMILIES, *_ALIASES)}
_NAME = re.compile(r"(?P<family>\w+)(?P<params>\(.*\))?(?:@(?P<cutoff>.*))?", re.ASCII)


def meaning(name: str) -> str:
    """What a measure says of a list, by a name as it is printed; empty for what is none."""
    family, _, cutoff = name.partition("@")
    end = f"places that {cutoff[:-1]} tokens hold" if cutoff.endswith("t") else f"{cutoff} places"
    where = f"over the first {end}, " if cutoff else ""
    return where + _FAMILIES[family].meaning if family in _FAMILIES else ""


def parse_measures(names: Iterable[object]) -> tuple[Measure, ...]:
    """Parse names of measures, in order and without repetition.

    The names are those of ir_measures in upper or lower case, including its aliases (MRR@10 is RR@10), and
    RecallAny@k and RecallAll@k for sets of memories; measure objects of ir_measures are read by their names.
    Every family but P takes tokens: R@2000t. Its
    own parser is not used, because it needs `ast.Num`, which Python 3.14 has removed.
    Raises ConfigError with every bad name: unknown family, parameters, cutoff missing or below 1.

    >>> [str(m) for m in parse_measures(["nDCG@10", "MRR", "nDCG@10"])]
    ['nDCG@10', 'RR']
    """
    parsed = {str(name): _parse(str(name).strip()) for name in names}
    if faults := [f"metric {quote(name)}: {one}" for name, one in parsed.items() if isinstance(one, str)]:
        raise ConfigError("; ".join(faults))
    return tuple(dict.fromkeys(one for one in parsed.values() if isinstance(one, Measure)))


def _parse(name: str) -> Measure | str:
    """Return the measure, or a text on what is wrong with its name."""
    match = _NAME.fullmatch(name)
    written = match["family"] if match else name.partition("@")[0]
    family = _FOLDED.get(written.casefold(), written)
    if match is None or family not in _FAMILIES:
        cut = f"@{match['cutoff']}" if match and match["cutoff"] else ""
        return f"no such measure{nearest(written + cut, [f'{name}{cut}' for name in _FAMILIES])}"
    if match["params"]:
        return f"parameters are not supported; did you mean '{family}@{match['cutoff'] or 10}'?"
    cutoff = match["cutoff"]
    if cutoff is None and _FAMILIES[family].needs_cutoff:
        return f"a cutoff is required; did you mean '{family}@10'?"
    form = r"[1-9][0-9]{0,8}" + ("" if family == "P" else "t?")  # precision is of places
    if cutoff is not None and not re.fullmatch(form, cutoff):
        return f"the cutoff must be a whole number from 1 on (of tokens: R@2000t); did you mean '{family}@10'?"
    if cutoff is None or cutoff.isdigit():
        return Measure(family, None if cutoff is None else int(cutoff))
    return Measure(family, tokens=int(cutoff[:-1]))


def evaluate(
    offsets: Indices, entry: NDArray[np.integer], judgments: Judgments, measures: Iterable[Measure]
) -> dict[Measure, Floats]:
    """Compute the value of each measure for each query.

    `offsets`: int64[Q + 1]: query q's list is `entry[offsets[q]:offsets[q + 1]]`; `entry`: int32[R]: the lists,
    best first, as indices in the `entries` of the judgments; an entry at most once in a list.
    Returns dict of float64[Q]: From 0 to 1. 0 for a query without results, without judgments (see
    `Judgments.judged`), and, as in trec_eval, without relevant entries; Judged@k then still counts. Of an empty
    list Judged@k is not known, NaN: a mean is over the queries with results (`known_mean`), since 0 would say that
    what is not there has no labels. ir_measures has 0 for a query that a run leaves out.

    Formulas of trec_eval 9 (m_ndcg_cut.c, m_map_cut.c, m_recall.c, m_P.c, m_success.c, m_recip_rank.c): P@k
    divides by k however short the list; R@k and AP@k divide by all relevant ids. Judged@k is ir_measures': judged
    among the first k, divided by min(k, results). RecallAny@k is 1 when a relevant entry is among the first k,
    RecallAll@k when all are. Memory is Q x K for the deepest cutoff K, the longest list when a measure has none.

    >>> judgments = Judgments.of({"q": {"a": 1, "b": 3}}, ["q"], ["a", "b", "c"])
    >>> values = evaluate(np.array([0, 2]), np.array([2, 1]), judgments, parse_measures(["R@2", "RR", "P@1"]))
    >>> {str(measure): value.tolist() for measure, value in values.items()}
    {'R@2': [0.5], 'RR': [0.5], 'P@1': [0.0]}
    """
    measures, values = tuple(measures), dict[Measure, Floats]()
    if len(offsets) - 1 != judgments.relevant.size:
        raise ValueError(f"{len(offsets) - 1} lists for {judgments.relevant.size} judged queries")
    for tokens in dict.fromkeys(measure.tokens for measure in measures):
        own = [measure for measure in measures if measure.tokens == tokens]
        shown = (offsets, entry) if tokens is None else within(offsets, entry, own[0].sizes(judgments), tokens)
        lists = _lists(*shown, judgments, own)
        values |= {m: _FAMILIES[m.family].compute(lists, m.cutoff) for m in own}
    return {measure: values[measure] for measure in measures}


def _lists(
    offsets: Indices, entry: NDArray[np.integer], judgments: Judgments, measures: Iterable[Measure]
) -> _Lists:
    length = np.diff(offsets)
    longest = max(1, int(length.max(initial=0)))
    depth = min(longest, max((m.cutoff or longest for m in measures), default=1))
    grade = np.full((length.size, depth), UNJUDGED, dtype=np.int32)
    query, rank = np.nonzero(np.arange(depth) < length[:, None])
    grade[query, rank] = judgments.grades(query, entry[offsets[query] + rank])
    return _Lists(grade, length, judgments)


def known_mean(values: Floats) -> float:
    """The mean over the queries of which a measure is known; 0 where it is known of none."""
    return float(values[some].mean()) if (some := np.isfinite(values)).any() else 0.0


def evaluate_lists(
    ranked: Ranked,
    qrels: Mapping[str, Mapping[str, int]],
    measures: Iterable[Measure],
    tokens: Mapping[str, int] | None = None,
) -> dict[Measure, Floats]:
    """Compute every measure for every query of ranked lists, float64[Q] each; `tokens` as in `Judgments.of`."""
    judgments = Judgments.of(qrels, ranked.queries, ranked.entries, tokens)
    return evaluate(ranked.offsets, ranked.entry, judgments, measures)
