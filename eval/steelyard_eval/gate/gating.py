"""Gates contenders against a committed baseline, and writes baselines: where everything in this room starts."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from steelyard.base.errors import PATH_WIDTH, ConfigError, DataError, nearest, shown, together
from steelyard.base.files import spare, write_texts
from steelyard.base.inputs import read_bytes
from steelyard.memory.query import Query
from steelyard_eval.compare.contenders import GivenMany
from steelyard_eval.compare.lists import ties
from steelyard_eval.datasets import CLASSIFIED, GIVEN, LOGGED, Dataset, as_dataset
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.datasets.kept_labels import kept_labels
from steelyard_eval.datasets.named import Naming
from steelyard_eval.datasets.states import State, states
from steelyard_eval.decide.provenance import day
from steelyard_eval.gate.answers import Asked, Field, GateAnswers, by_query, read_asked
from steelyard_eval.gate.baseline import Baseline, KeptContender, load_baseline, tool
from steelyard_eval.gate.contest import Contest
from steelyard_eval.gate.gate_document import GateSetup, document, mismatch
from steelyard_eval.gate.hashes import configuration_hash, data_hashes, elsewhere, platform_name, sources_hash
from steelyard_eval.gate.result import Gating
from steelyard_eval.gate.rule import BUDGET
from steelyard_eval.gate.updates import refuse_both, refuse_worse
from steelyard_eval.measures.stale import Succession
from steelyard_eval.recording.rankings.spelling import word
from steelyard_eval.recording.workspace import Workspace, judged
from steelyard_eval.result.sentences import dialect

BASELINE = Path("reports/baseline.json")
DIALECT = dialect(ties(["strategy"]))
"""How values are computed; a baseline keeps it."""
DATA = ("corpus", "queries", "labels")
PARTS = dict(zip(("entries", "queries", "labels"), DATA, strict=True))
MOST = 5_000
"""Entries, queries or judgments that a baseline keeps one by one, to say later which changed."""


@dataclass(frozen=True)
class Gate:
    """A data set with its baseline, and how it is searched.

    Parameters
    ----------
    dataset : Dataset
        What is searched, and how it is judged.
    path : Path
        The baseline.
    workspace : callable
        Opens the data set with an embedder, by its name.
    embedder, split, limit
        The baseline's own by default.
    budget : float
        The drop of nDCG@10 that is accepted unproven.
    block_slices : bool
        Whether a category or intent that is significantly worse fails the gate.
    now : callable
        The time, for the dates of updates.
    """

    dataset: Dataset
    path: Path
    workspace: Callable[[str], Workspace]
    embedder: str | None = None
    split: str | None = None
    limit: int | None = None
    budget: float = BUDGET
    block_slices: bool = False
    now: Callable[[], float] = time.time

    @classmethod
    def of(
        cls,
        source: Dataset | str | Path,
        path: str | Path = BASELINE,
        embedder: str | None = None,
        **options: Any,  # noqa: ANN401 -- the fields of the class
    ) -> Gate:
        """The gate of a data set or its folder, which is indexed when a contender needs it; see the class."""
        dataset = as_dataset(source)
        return cls(dataset, Path(path), cache(partial(Workspace.open, dataset)), embedder, **options)

    def check(self, contenders: GivenMany | None = None) -> Gating:
        """Gate these contenders, or all that the baseline names.

        Raises DataError for a baseline that is missing, cut short, or edited; ConfigError for a contender that is
        none, or that the baseline does not know.
        """
        baseline = load_baseline(self.path, self.rebaseline)
        differing = self.differing(baseline)
        if differing:
            setup, states_now = self._setup(baseline), self._states(baseline)
            copy = self._copy_of_labels(baseline) if "labels" in differing else None
            return Gating(mismatch(setup, differing, states_now, self._written_with(baseline), copy))
        asked = self._named_by(baseline) if contenders is None else read_asked(contenders)
        baseline = _in_place(self._aligned(baseline), asked)
        pairs = [_kept(baseline, contender) for contender in asked]
        answers = self._field(baseline).run(asked)
        contests = [self._contest(now, kept, baseline) for now, kept in zip(answers, pairs, strict=True)]
        found = document(self._setup(baseline), contests)
        return Gating(found, by_query(answers, self.queries(baseline)))

    def update(
        self,
        contenders: GivenMany | None = None,
        *,
        because: str,
        accept_worse: bool = False,
    ) -> tuple[Gating | None, Path | None]:
        """Write a new baseline of these contenders, or of all that the old one names.

        Returns the result of gating it, None without a comparable old baseline, and where the old one is kept.
        Raises ConfigError, and writes nothing, when nobody says why, or `accept_worse` is false and it is worse
        than the old one, drops a contender, or changes one while the data changed, too.
        """
        old = load_baseline(self.path, self.rebaseline) if self.path.exists() else None
        if not because.strip():
            raise ConfigError('an update needs a reason for those who review it: --because "..."')
        if contenders is None and old is None:
            raise ConfigError(f"there is no baseline at {self.path} to update; name the contenders to begin one")
        asked = self._named_by(old) if contenders is None and old else read_asked(contenders or ())
        old = _in_place(old, asked) if old is not None else None
        differing = self.differing(old) if old is not None else {}
        comparable = self._aligned(old) if old is not None and not differing else None
        answers = self._field(old).run(asked)
        gating = self._gated(answers, comparable) if comparable else None
        if not accept_worse:
            refuse_worse(answers, old, gating)
            if old is not None and differing:
                made = {} if "corpus" in differing else {o.label: self._configuration(o, old) for o in answers}
                refuse_both(answers, old, differing, made)
        new = self._baseline(self._keep(answers, comparable), old, because.strip())
        copy = None if old is None else spare(self.path)
        write_texts({**({copy: read_bytes(self.path)} if copy else {}), self.path: new.text()})
        return gating, copy

    @property
    def rebaseline(self) -> str:
        """The command that writes a new baseline of the same contenders."""
        other = f" --baseline {shlex.quote(word(self.path))}" if self.path != BASELINE else ""
        return f'steelyard gate {shlex.quote(word(self.dataset.path))}{other} --update --because "..."'

    def replacing(self, contender: str, old: Baseline) -> str:
        """The command that writes a new baseline of a contender alone."""
        gate, update, because = self.rebaseline.partition(" --update")
        drops = " --accept-worse" if len(old.contenders) > 1 else ""
        return f"{gate} {contender}{update}{drops}{because}"

    def _named_by(self, baseline: Baseline) -> list[Asked]:
        """The contenders of a baseline; ConfigError for one that no file may name."""
        instead = f"name what is used now: {self.replacing('CONTENDER', baseline)}"
        naming = replace(Naming.of_baseline(self.path), instead=instead)
        return together(*(partial(Asked.again, naming, self.dataset, *kept.named) for kept in baseline.contenders))

    def queries(self, baseline: Baseline | None) -> tuple[Query, ...]:
        """The judged queries of the split."""
        split = self.split or (baseline.split if baseline else None)
        queries = judged(self.dataset, self.dataset.split(split))
        if not queries:
            raise ConfigError(f"{self.dataset.called}: no query of the split has judgments; add them to qrels.txt")
        return queries

    def unanswerable(self, baseline: Baseline | None) -> tuple[Query, ...]:
        """The queries of the split that nothing answers."""
        split = self.split or (baseline.split if baseline else None)
        return tuple(
            query for query in self.dataset.split(split) if not query.answerable and query.split != LOGGED
        )

    def _field(self, baseline: Baseline | None) -> Field:
        limit = self.limit or (baseline.limit if baseline else None)
        space = partial(self._space, baseline)
        return Field(self.dataset, self.queries(baseline), limit, space, self.unanswerable(baseline))

    def _space(self, baseline: Baseline | None) -> Workspace:
        if self.embedder or not baseline:
            return self.workspace(self.embedder or "auto")
        return self.workspace(Naming.of_baseline(self.path).embedder(baseline.embedder))

    def _aligned(self, baseline: Baseline) -> Baseline:
        """The baseline with its lists in the order of our queries; DataError when it has not one list a query."""
        ids = [query.id for query in self.queries(baseline)]
        contenders = []
        for kept in baseline.contenders:
            lists = {row.id: row for row in kept.lists}
            if len(kept.lists) != len(ids) or lists.keys() != set(ids):
                raise DataError(
                    f"the baseline {shown(str(self.path), PATH_WIDTH)} has not one list a query of "
                    f"{shown(kept.label)}; restore it from version control, or write it again: {self.rebaseline}"
                )
            contenders.append(replace(kept, lists=tuple(lists[id_] for id_ in ids)))
        return replace(baseline, contenders=tuple(contenders))

    def differing(self, baseline: Baseline) -> dict[str, tuple[str, str]]:
        """What was not measured on the same: name -> the baseline's hash and ours."""
        ours = self._hashes(baseline) | {"dialect": DIALECT}
        theirs = {**baseline.hashes, "dialect": baseline.dialect}
        return {name: (theirs[name], ours[name]) for name in (*DATA, "dialect") if theirs[name] != ours[name]}

    def _hashes(self, baseline: Baseline | None) -> dict[str, str]:
        """The hashes of what both measurements have to share."""
        return data_hashes(self.dataset, self.queries(baseline), self.unanswerable(baseline))

    def _states(self, baseline: Baseline | None) -> dict[str, State]:
        """What is hashed, item by item, where it is not too much to keep."""
        asked = self.queries(baseline)
        qrels = {query.id: self.dataset.qrels[query.id] for query in asked}
        part = replace(self.dataset, queries=(*asked, *self.unanswerable(baseline)), qrels=qrels)
        return {PARTS[name]: state for name, state in states(part, MOST).items() if state}

    def _written_with(self, baseline: Baseline) -> str | None:
        """The other source of intents, where the baseline's queries were asked with it; else None."""
        other = CLASSIFIED if self.dataset.intents == GIVEN else GIVEN
        hashes = replace(self, dataset=replace(self.dataset, intents=other))._hashes(baseline)
        return other if hashes["queries"] == baseline.hashes["queries"] else None

    def of_other_labels(self) -> bool:
        """Whether there is a baseline of this data set that can be read, and its labels are not those of today."""
        try:
            baseline = load_baseline(self.path, self.rebaseline)
            return baseline.dataset == self.dataset.name and "labels" in self.differing(baseline)
        except (ConfigError, DataError):
            return False

    def _named(self, old: Baseline | None) -> str:
        """The embedder that a new baseline names: what auto stands for, where the data set says it."""
        name = self.embedder or (old.embedder if old else "auto")
        return self.dataset.embedder or name if name == "auto" else name

    def _copy_of_labels(self, baseline: Baseline) -> tuple[Path, int] | None:
        """The kept copy of the labels of the baseline, and how many of today's it lacks; None without one."""
        copy, qrels = kept_labels(self.dataset) or (None, {})
        with suppress(ConfigError):  # no query of the split has labels there
            hashes = replace(self, dataset=replace(self.dataset, qrels=qrels))._hashes(baseline)
            if copy and hashes["labels"] == baseline.hashes["labels"]:
                held = self.dataset.qrels.items()
                return copy, sum(entry not in qrels.get(query, {}) for query, row in held for entry in row)
        return None

    def _setup(self, baseline: Baseline) -> GateSetup:
        return GateSetup(self.dataset, self.path, baseline, self.budget, self.rebaseline)

    def _contest(self, answers: GateAnswers, kept: KeptContender, baseline: Baseline) -> Contest:
        queries = self.queries(baseline)
        made = (self._configuration(answers, baseline), sources_hash())
        same = bool(made[0]) and made == (kept.configuration, baseline.hashes["sources"])
        where = elsewhere(baseline.platform)
        return Contest(
            answers,
            kept,
            queries,
            unit_numbers(queries),
            self.budget,
            same,
            where,
            self.block_slices,
            len(self.unanswerable(baseline)),
            partial(self._is_stale, facts) if (facts := Succession.of(self.dataset.entries)) else None,
        )

    def _is_stale(self, facts: Succession, query: Query, ids: Sequence[str]) -> bool:
        return bool(facts.stale(ids, self.dataset.clock(query)))

    def _configuration(self, answers: GateAnswers, baseline: Baseline | None) -> str:
        model = self._space(baseline).model if answers.config else ""
        return configuration_hash(answers.config, self.dataset, model)

    def _gated(self, answers: Sequence[GateAnswers], old: Baseline) -> Gating | None:
        known = [(now, kept) for now in answers if (kept := old.find(now.label)) is not None]
        if not known:
            return None
        return Gating(document(self._setup(old), [self._contest(now, kept, old) for now, kept in known]))

    def _keep(self, answers: Sequence[GateAnswers], old: Baseline | None) -> list[KeptContender]:
        """What is kept. The anchor stays, unless the contender is significantly better, or accepted as worse."""
        queries = [query.id for query in self.queries(old)]
        contenders = []
        for answer in answers:
            kept = KeptContender.of(answer, self._configuration(answer, old), queries, day(self.now))
            before = old.find(answer.label) if old else None
            if old and before:
                against = self._contest(answer, before, old).against_anchor
                kept = kept if against.better or against.fails else kept.anchored(before)
            contenders.append(kept)
        return contenders

    def _baseline(self, kept: Sequence[KeptContender], old: Baseline | None, because: str) -> Baseline:
        return Baseline(
            tool=tool(),
            date=day(self.now),
            dataset=self.dataset.name,
            split=self.split or (old.split if old else "") or self.dataset.report_split or "all",
            limit=self.limit or (old.limit if old else None),
            embedder=self._named(old),
            dialect=DIALECT,
            hashes={**self._hashes(old), "sources": sources_hash()},
            platform=platform_name(),
            because=because,
            contenders=tuple(kept),
            states=self._states(old),
        )


def _in_place(baseline: Baseline, asked: Sequence[Asked]) -> Baseline:
    """The baseline for these contenders: a single one takes the place of a single one, whatever their names."""
    if len(asked) != 1 or len(baseline.contenders) != 1:
        return baseline
    return replace(baseline, contenders=(replace(baseline.contenders[0], label=asked[0].one.label),))


def _kept(baseline: Baseline, asked: Asked) -> KeptContender:
    """What the baseline keeps of a contender; ConfigError where it keeps nothing."""
    label = asked.one.label
    kept = baseline.find(label)
    if kept is not None:
        return kept
    labels = [other.label for other in baseline.contenders]
    such = shown(f"{labels[0]}={asked.written or label}", PATH_WIDTH)
    raise ConfigError(
        f"{shown(label)} is not in the baseline{nearest(label, labels)}; write the one that it is to be held "
        f"against before it, as in {such}"
    )
