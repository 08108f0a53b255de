"""What `check` asks by searching: whether entries are found by their own sentences, and what a lead rests on.

Nearly every search finds a known item, so what is not found names what is broken: a field that is not indexed,
chunks that were lost, vectors that are empty. It says nothing of quality: such questions favour words, and choose
worse than always the same default (docs/evidence/few-labels.md), so no weights are ever chosen by them.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtrc  # scipy.stats takes half a second to import

from steelyard.base.errors import ConfigError
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.memory.words import split
from steelyard_eval.common.configurations import LIST_KINDS
from steelyard_eval.compare.answer import one_scope
from steelyard_eval.compare.compare import compare
from steelyard_eval.compare.contenders import Given, read, usual
from steelyard_eval.compare.lists_and_latency import Runner
from steelyard_eval.compare.score_scales import DEAD
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import judged
from steelyard_eval.measures.metrics import Measure, evaluate_lists
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Fact, Message

Qrels = Mapping[str, Mapping[str, int]]

METRIC = Measure("nDCG", 10)
MAX_ASKED_QUERIES, MAX_SEARCHED_ENTRIES = 50, 20_000
SAMPLE_SIZE = 200
PLACES = 10
MIN_QUESTION_WORDS = 4
MAX_QUESTION_WORDS = 25
MIN_ENTRIES_PER_KIND = 5
BROKEN = 0.25  # the share that is not found from which on a kind is named, if chance has it once in `RARE` sets
RARE = 100
DRAWS, FIRST = 200, 5  # shuffles, and rounds of exchanges before the first of them; between two there is one
ALPHA = 0.05
FIELDS = ("title", "text", "context", "why", "impact", "details", "l0", "l1")
PLACED = ("beginning", "middle", "end")
_END = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f\u0964])\s*|\n+")


class KnownItem(NamedTuple):
    """A sentence with the entry it is of, the field, and the part of the field that it stands in."""

    sentence: str
    entry: str
    kinds: tuple[str, ...]


def known_items(dataset: Dataset, seed: int = 0) -> list[KnownItem]:
    """A sentence of each of `SAMPLE_SIZE` entries, drawn by the seed; entries without one are left out."""
    rng = np.random.default_rng(seed)
    items: list[KnownItem] = []
    for i in rng.permutation(len(dataset.entries)).tolist():
        if len(items) == SAMPLE_SIZE:
            break
        entry = dataset.entries[i]
        if sentences := list(_sentences(entry)):
            field, part, text = sentences[int(rng.integers(len(sentences)))]
            named = {"type": entry.type or entry.category, "project": entry.project, "source": entry.source}
            own = [f"{name} {value}" for name, value in named.items() if value]
            items.append(KnownItem(text, entry.id, (f"field {field}", f"the {part} of {field}", *own)))
    return items


def _sentences(entry: Entry) -> Iterator[tuple[str, str, str]]:
    """Every sentence with its field and the third of the field that it stands in."""
    for field in FIELDS:
        parts = [part.strip() for part in _END.split(getattr(entry, field) or "")]
        for i, part in enumerate(parts):
            if max(len(part.split()), len(split(part))) >= MIN_QUESTION_WORDS:
                yield field, PLACED[3 * i // len(parts)], " ".join(part.split()[:MAX_QUESTION_WORDS])


def ask_known_items(
    dataset: Dataset, given: Given | None = None, *, embedder: str = "auto", seed: int = 0
) -> dict[str, object]:
    """Ask for 200 entries by a sentence of each: what is not among the first ten, by kind of entry.

    `given` is asked: what dataset.json names as `system` by default, else bm25. Recorded vectors have none of
    these queries: `broken_vectors` checks them, and contenders that use them search by keywords.
    """
    items = known_items(dataset, seed)
    queries = [Query(text=item.sentence, id=f"known-{i}") for i, item in enumerate(items)]
    asked = replace(dataset, queries=tuple(queries), qrels={}, query_vectors={})
    kind = "none" if embedder in ("auto", "recorded") and dataset.query_vectors else embedder
    contender = read(dataset.system or "bm25" if given is None else given)
    if contender.kind in ("run", "frame"):
        raise ConfigError(
            f"{contender.label} is {LIST_KINDS[contender.kind]}, which cannot answer new queries; name a system"
        )
    lists: Sequence[Sequence[str]] = []
    if items:
        arena = Runner(Source.needed_by([contender], asked, lambda: Workspace.open(asked, kind)), PLACES)
        lists = arena.run([contender], queries, timed=False)[0].ranked.lists()
    texts = {
        entry.id: [" ".join((getattr(entry, field) or "").split()) for field in FIELDS]
        for entry in dataset.entries
    }
    missed = [
        not any(item.sentence in text for id_ in ids[:PLACES] for text in texts.get(id_, ()))
        for item, ids in zip(items, lists, strict=True)
    ]
    record = {
        "contender": contender.label,
        "questions": len(items),
        "missed": sum(missed),
        "kinds": _by_kind(items, missed),
        "examples": [item.entry for item, lost in zip(items, missed, strict=True) if lost][:PLACES],
        "vectors": broken_vectors(dataset),
    }
    return {**record, "sentence": " ".join(_told(record))}


def _by_kind(items: Sequence[KnownItem], missed: Sequence[bool]) -> list[dict[str, Any]]:
    """Kinds of at least `MIN_ENTRIES_PER_KIND` questions, those with the largest share first."""
    asked = Counter(kind for item in items for kind in item.kinds)
    lost = Counter(kind for item, gone in zip(items, missed, strict=True) if gone for kind in item.kinds)
    often = [kind for kind, count in asked.items() if count >= MIN_ENTRIES_PER_KIND]
    often.sort(key=lambda kind: (-lost[kind] / asked[kind], kind))
    return [{"kind": kind, "questions": asked[kind], "missed": lost[kind]} for kind in often]


def broken_vectors(dataset: Dataset) -> list[dict[str, object]]:
    """Of each model: how many vectors are empty, and how many are those of an entry with another text."""
    rows = []
    for model in sorted(model for model, layer in dataset.vectors if layer == "text"):
        vectors = dataset.vectors[model, "text"]
        first: dict[bytes, str] = {}
        blank, same = ~np.any(vectors, axis=1), 0
        for entry, row, nothing in zip(dataset.entries, vectors, blank.tolist(), strict=True):
            told = f"{entry.title}\n{entry.text}"
            same += not nothing and first.setdefault(np.asarray(row).tobytes(), told) != told
        rows.append({"model": model, "entries": len(vectors), "empty": int(blank.sum()), "same": same})
    return rows


def _told(found: dict[str, Any]) -> Iterator[str]:
    if not found["questions"]:
        yield "No entry has a sentence to ask for it by."
        return
    yield (
        f"{found['contender']} misses {found['missed']} of {found['questions']} entries that were asked for by a "
        f"sentence of their own ({found['missed'] / found['questions']:.0%})."
    )
    for row in found["kinds"]:
        # How likely so many among this kind are, were it missed as often as the others (binomial).
        rate = (found["missed"] - row["missed"] + 1) / (found["questions"] - row["questions"] + 2)
        chance = bdtrc(row["missed"] - 1, row["questions"], rate)
        if row["missed"] / row["questions"] >= BROKEN and chance < 1 / (RARE * len(found["kinds"])):
            yield f"Of {row['kind']}: {row['missed']} of {row['questions']}; is it indexed?"
    for row in found["vectors"]:
        if row["empty"] or row["same"]:
            yield (
                f"Vectors of {row['model']}: {row['empty']} of {row['entries']} are empty, and {row['same']} are "
                "those of an entry with another text (long texts are cut before they are embedded)."
            )


def dead_retrievers(dataset: Dataset) -> list[Message]:
    """Which retrievers by words find nothing for some of the queries, in what is used today and in bm25."""
    asked, names = dataset.split("all")[:MAX_ASKED_QUERIES], [*{dataset.today: 0, "bm25": 0}]
    some = replace(dataset, queries=asked if len(dataset.entries) <= MAX_SEARCHED_ENTRIES else (), qrels={})
    with suppress(ConfigError):  # there are no queries, or what is used today needs vectors
        made = compare(some, names, split="all", embedder="none", timed=False)
        return [notice for notice in made.result.notices if notice.key in DEAD]
    return []


def shared_scopes(dataset: Dataset, queries: Sequence[Query]) -> list[Message]:
    """What judged queries are worth that share scopes and have no group, by a comparison of two baselines.

    They are bm25 and vector where vectors are recorded, else bm25 and fts, so that nothing has to be embedded.
    """
    other, embedder = ("vector", "recorded") if dataset.query_vectors else ("fts", "none")
    result = compare(dataset, ["bm25", other], metrics=str(METRIC), split="all", embedder=embedder, timed=False)
    return one_scope(queries, {label: metrics[str(METRIC)] for label, metrics in result.values.items()}, "bm25")


def null_check(dataset: Dataset, current: str | None = None, embedder: str = "auto", seed: int = 0) -> Message:
    """What shuffled labels leave of the lead of the best contender over what is used today, or the next best.

    Two queries of a scope exchange at random what only one of them has as relevant, again and again (curveball:
    Strona et al., Nature Communications 5, 2014). So each query keeps its grades, and each entry the number of
    queries that it is relevant to. A lead that is left is of entries that suit any query.
    """
    used = read(current or dataset.today)
    named = [used, *(one for one in map(read, usual(None)) if one.label != used.label)]
    scopes = defaultdict(list)
    for query in judged(dataset, dataset.split("all")) if dataset.qrels else ():
        scopes[str(query.filters)].append(query)
    queries = [query for own in scopes.values() if len(own) > 1 for query in own]
    if not queries:
        return Message("null_without")
    arena = Runner(Source.needed_by(named, dataset, lambda: Workspace.open(dataset, embedder)), 10)
    lists = {one.label: one.ranked for one in arena.run(named, queries, timed=False)}

    def mean(label: str, qrels: Qrels) -> float:
        return float(evaluate_lists(lists[label], qrels, [METRIC])[METRIC].mean())

    best, *others = sorted(lists, key=lambda label: (-mean(label, dataset.qrels), label))
    other = used.label if used.label in others else others[0]
    alike = [[query.id for query in own] for own in scopes.values()]
    each = [dataset.qrels, *shuffled(dataset.qrels, alike, seed)]
    lead, *left = (mean(best, qrels) - mean(other, qrels) for qrels in each)
    often = sum(one >= lead for one in left)
    gone = lead > 0 and (often + 1) / (DRAWS + 1) < ALPHA
    facts: dict[str, Fact] = {"best": best, "other": other, "metric": str(METRIC), "lead": lead, "draws": DRAWS}
    facts["least"] = int(ALPHA * (DRAWS + 1))
    facts |= {"left": float(np.mean(left)), "most": max(left), "gone": gone, "often": None if gone else often}
    return Message("null_check", facts)


def shuffled(qrels: Qrels, alike: Sequence[Sequence[str]], seed: int) -> Iterator[Qrels]:
    """`DRAWS` shuffles of the labels of queries, which exchange entries with those that are `alike`."""
    rng = np.random.default_rng(seed)
    grades = {id_: [grade for grade in qrels[id_].values() if grade > 0] for ids in alike for id_ in ids}
    held = {id_: {entry for entry, grade in qrels[id_].items() if grade > 0} for id_ in grades}
    for draw in range(FIRST + DRAWS - 1):
        for ids in alike:
            for _ in ids if len(ids) > 1 else ():
                one, two = (ids[at] for at in rng.choice(len(ids), 2, replace=False))
                both, apart = held[one] & held[two], sorted(held[one] ^ held[two])
                taken = {apart[at] for at in rng.permutation(len(apart))[: len(held[one]) - len(both)].tolist()}
                held[one], held[two] = both | taken, both | (set(apart) - taken)
        if draw >= FIRST - 1:
            orders = {id_: rng.permutation(sorted(own)).tolist() for id_, own in held.items()}
            yield {id_: dict(zip(order, grades[id_], strict=True)) for id_, order in orders.items()}
