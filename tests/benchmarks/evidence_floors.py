"""Whether floors keep what they promise: `make evidence EVIDENCE="--part floors"` has the tables of docs/floor.md.

Labels are drawn from a collection with replacement, so its own rates are the truth; a claim is broken where the
truth exceeds it. Questions about something else are the queries of the next collection in the list. Those of
conversations are asked in a conversation of this collection, and `other` are those of another conversation.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from evidence_matrices import DATA

from steelyard.embedders.embed import RecordedEmbedder
from steelyard_eval.choose.find_floor import (
    Floor,
    ScoredResults,
    floor_for_false_answers,
    floor_for_recall_loss,
    floor_lists,
    reading,
)
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare.contenders import read
from steelyard_eval.datasets import load
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace, recorded

GROUPS = {
    "chosen on": ("cacm", "cranfield", "scifact", "locomo", "madial"),
    "confirmed on": ("cisi", "vaswani", "cosqa", "beam-128k", "locomo-sessions"),
}
"""The prototype's split of the ten collections."""
EVERY = [name for names in GROUPS.values() for name in names]
SHOWN = "weighted_sum(0.5*bm25, 0.5*vector, normalize=max)"
LABELS = (40, 100, 400)
UNANSWERABLE = ("locomo", "locomo-sessions")
"""The collections that have questions without an answer."""
FOREIGN = 150
"""Questions about something else."""
SHARE = 0.1


@dataclass(frozen=True)
class Shown(ScoredResults):
    """Lists with the words of each hit, int64[R]."""

    words: np.ndarray

    def words_shown(self, floor):
        """The share of the words of all lists that are left; 0 where nothing is shown at all."""
        total = float(self.words.sum())
        return float(self.words[self.score >= floor].sum()) / total if total else 0.0


@dataclass(frozen=True)
class Case:
    """What a collection shows for its own questions and for others, on the floor's scale."""

    name: str
    embedder: str

    @cached_property
    def dataset(self):
        return load(DATA / self.name)

    @cached_property
    def lists(self):
        """kind of question -> Lists: answerable, none, foreign, other."""
        dataset = self.dataset
        own = [q for q in dataset.queries if q.id in dataset.qrels and q.answerable]
        kinds = {"answerable": own, "none": [q for q in dataset.queries if not q.answerable]}
        kinds["foreign"] = self._foreign(own)
        kinds["other"] = self._elsewhere(own)
        asked = [replace(q, id=f"{kind} {at}") for kind, part in kinds.items() for at, q in enumerate(part)]
        labels = {f"answerable {at}": dataset.qrels[q.id] for at, q in enumerate(own)}
        data = replace(dataset, queries=tuple(asked), qrels=labels, query_vectors={})
        space = self._space(data)
        scale = Floor(0.0)
        config = reading(read(SHOWN).config(Setting(10, space.model)), scale)
        table = record(space, asked, [config])
        words, run = {entry.id: len(entry.text.split()) for entry in data.entries}, replay(table, config)
        sizes = np.array([words[table.entries[entry]] for entry in run.entry.tolist()], dtype=np.int64)
        number, found = {id_: at for at, id_ in enumerate(table.queries)}, {}
        for kind in kinds:
            part = [q for q in asked if q.id.startswith(f"{kind} ")]
            spans = [sizes[slice(*run.ranking.offsets[number[q.id] : number[q.id] + 2])] for q in part]
            own = floor_lists(data, part, table, config, scale)
            found[kind] = Shown(**vars(own), words=np.concatenate([np.zeros(0, np.int64), *spans]))
        return found

    def _space(self, data):
        space = Workspace.open(data, "lsa" if self.embedder == "lsa" else "none")
        if self.embedder == "lsa":
            return space
        model = sorted({model for model, _ in data.vectors})[0]
        embedder = recorded(self.dataset, model)
        texts = dict(embedder._vectors)
        after = load(DATA / self._next)
        texts |= dict(zip((q.text for q in after.queries), after.query_vectors[model], strict=True)) | dict(texts)
        return replace(space, embedder=RecordedEmbedder(model, data.recipe, texts))

    @property
    def _next(self):
        names = EVERY[EVERY.index(self.name) + 1 :] + EVERY
        return next(name for name in names if name.split("-")[0] != self.name.split("-")[0])

    def _foreign(self, own):
        rng = np.random.default_rng(0)
        strange = load(DATA / self._next).queries
        chosen = rng.permutation(len(strange))[:FOREIGN]
        homes = rng.integers(len(own), size=len(chosen))
        pairs = zip(chosen, homes, strict=True)
        return [replace(own[home], text=strange[at].text, intent="") for at, home in pairs]

    def _elsewhere(self, own):
        if not any(q.filters for q in own):
            return []
        rng, found = np.random.default_rng(1), []
        for at in rng.permutation(len(own))[:FOREIGN]:
            others = [q for q in own if q.filters != own[at].filters]
            found.append(replace(own[at], filters=others[rng.integers(len(others))].filters))
        return found


def drawn(lists, chosen):
    """The lists of some queries, perhaps several times, each a unit of its own."""
    places = [np.arange(*lists.offsets[q : q + 2]) for q in chosen]
    rows = np.concatenate([np.zeros(0, np.int64), *places])
    offsets = np.cumsum([0, *map(len, places)])
    return ScoredResults(offsets, lists.score[rows], lists.relevant[rows], np.arange(len(chosen)))


def lost_row(lists, count, draws):
    """Of one collection and number of labels: how often the claim is broken, and what the floors do."""
    own, rng, found = lists["answerable"], np.random.default_rng(count), []
    able = np.unique(own.query[own.relevant])
    for _ in range(draws):
        bound = floor_for_recall_loss(drawn(own, rng.choice(able, size=count)), SHARE)
        floor = bound.floor
        truth = float(own.lost(np.array([floor])).mean())
        kinds = [lists[kind].words_shown(floor) if len(lists[kind].unit) else np.nan for kind in lists]
        found.append([truth > SHARE, truth, *kinds])
    return dict(zip(("broken", "lost", *lists), np.mean(found, axis=0).tolist(), strict=True))


def false_row(lists, count, draws):
    """Of real questions without an answer: how often the claim is broken, and how many answers are kept."""
    own, rng, found = lists["none"], np.random.default_rng(count), []
    for _ in range(draws):
        bound = floor_for_false_answers(drawn(own, rng.integers(len(own.unit), size=count)), SHARE)
        found.append([(own.best >= bound.floor).mean() > SHARE, (lists["answerable"].best >= bound.floor).mean()])
    return dict(zip(("broken", "kept"), np.mean(found, axis=0).tolist(), strict=True))


def floor_rows(folder, embedder, draws):
    rows = {}
    for name in EVERY:
        case = Case(name, embedder)
        jobs = [("lost", count, lost_row) for count in (*LABELS, 60)]
        jobs += [("false", count, false_row) for count in (22, 100)] if name in UNANSWERABLE else []
        for promise, count, row_of in jobs:

            def make(case=case, count=count, row_of=row_of):
                return row_of(case.lists, count, draws)

            rows[name, promise, count] = folder.row(f"floor.{embedder}.{name}.{promise}.{count}.{draws}", make)
    return {key: row for key, row in rows.items() if row}


def floor_table(rows):
    lines = [f"lost at most {SHARE:.0%}: share of label sets whose claim is broken (mean truly lost)"]
    for group, names in GROUPS.items():
        for n in LABELS:
            own = sorted(
                ((rows[name, "lost", n], name) for name in names if (name, "lost", n) in rows),
                key=lambda pair: -pair[0]["broken"],
            )
            if own:
                cells = "  ".join(f"{name} {row['broken']:.2f} ({row['lost']:.3f})" for row, name in own)
                mean = np.mean([row["broken"] for row, _ in own])
                lines.append(f"{group:13}{n:4}  mean {mean:.3f}  {cells}")
    lines.append("words shown with 60 labels, a share: answerable, no answer, something else, other conversation")
    for name in EVERY:
        if (name, "lost", 60) in rows:
            row = rows[name, "lost", 60]
            kinds = (row.get(kind) for kind in ("answerable", "none", "foreign", "other"))
            cells = "  ".join("  -" if one is None or np.isnan(one) else f"{one:.2f}" for one in kinds)
            lines.append(f"{name:17}{cells}")
    lines.append(f"false at most {SHARE:.0%}: broken, and answerable questions that are still answered")
    for (name, kind, n), row in rows.items():
        if kind == "false":
            lines.append(f"{name:17}{n:4}  {row['broken']:.2f}  {row['kept']:.2f}")
    return "\n".join(lines)
