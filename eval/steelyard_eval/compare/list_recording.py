"""Lists of other engines as a recording: each is a retriever, so strategies can be compared and tuned on them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np

from steelyard.base.errors import ConfigError, DataError, quote
from steelyard.base.files import canonical
from steelyard.config import LISTS as SYSTEM
from steelyard.fusion import parse_strategy
from steelyard.live.sources import identity
from steelyard.memory.entry import Entry
from steelyard.retrievers.kinds import RetrieverConfig
from steelyard.stores.base import ScoredId
from steelyard.systems import find_system
from steelyard.table.join import join
from steelyard.table.signal_table import LISTS, SignalTable
from steelyard_eval.compare.contenders import GivenMany, distinct, read_all
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.datasets import CLASSIFIED, Dataset
from steelyard_eval.measures.trec_runs import Scored
from steelyard_eval.recording.disk import save
from steelyard_eval.result.structs import Message

MAX_LIST_RESULTS = 10_000


def record_lists(
    dataset: Dataset, lists: Mapping[str, ListContender], split: str | None = "all"
) -> tuple[SignalTable, list[Message]]:
    """Record lists of other engines over the queries of a split; return the table and notices.

    `lists` are by their names, which are signals of expressions: plain words that no fusion or signal computed by
    Steelyard has (fts, bm25 and vector may be used). The order of each list is its ranking, also among equal
    scores. Scores are kept, and a larger one is better. Entries that are not in the data set are kept: they are
    ranked, and are not judged.

    Raises ConfigError for names that cannot be used, DataError for scores that contradict the order of a list.
    """
    if not lists:
        raise ConfigError("there is no list to record; name one, as bm25=a.run")
    if odd := [name for name in lists if not names_list(name)]:
        raise ConfigError(f"{quote(odd[0])} is not a valid list name; use a word such as mine or bm25")
    queries = dataset.with_known_intents(dataset.split(split))
    answers = {name: contender.answers(queries, MAX_LIST_RESULTS, dataset) for name, contender in lists.items()}
    found: list[dict[str, list[ScoredId]]] = [{} for _ in queries]
    for name, answer in answers.items():
        for query, own, places in zip(queries, found, answer.lists, strict=True):
            own[name] = _found(f"list {name}, query {quote(query.id)}", places)
    known = {entry.id: entry for entry in dataset.entries}
    clocks = [dataset.clock(query) for query in queries]
    table = join(queries, clocks, found, {}, lambda ids, _: [known.get(id_) or Entry(id_) for id_ in ids])
    notices = [notice for answer in answers.values() for notice in answer.notices]
    strange = sum(id_ not in known for id_ in table.entries)
    notices += [Message("strangers", {"count": strange, "data": dataset.called})] if strange else []
    config = replace(find_system(SYSTEM).config(), retrievers={name: RetrieverConfig() for name in answers})
    fixed = {**identity(config), "corpus": dataset.sha256, "model": "", "recipe": ""}
    fixed["max_depth"] = {name: max(1, *map(len, answer.lists)) for name, answer in answers.items()}
    hashes = {name: sha256(canonical(answer.lists).encode()).hexdigest() for name, answer in answers.items()}
    fixed |= {LISTS: hashes, "vectors": "", "intents": dataset.intents or CLASSIFIED}
    return replace(table, fingerprint=fixed), notices


def save_lists(
    dataset: Dataset, lists: GivenMany, out: Path, split: str | None = "all"
) -> tuple[dict[str, int], list[Message]]:
    """Record lists of other engines into the folder `out`; return its number of rows, and notices.

    `lists` names each list: ``"bm25=a.run, mine=b.run"``, or a mapping of names to contenders that are lists.
    See `record_lists` for the errors.
    """
    contenders = distinct(read_all(lists))
    named = {contender.label: contender for contender in contenders if isinstance(contender, ListContender)}
    if len(named) < len(contenders):
        others = "; ".join(contender.label for contender in contenders if contender.label not in named)
        raise ConfigError(f"{others}: not a list of another engine; name TREC runs, URLs or tables")
    table, notices = record_lists(dataset, named, split)
    save(table, out)
    return {str(out): len(table)}, notices


def names_list(name: str) -> bool:
    """Whether a word can name a list of another engine: no fusion has it, nor a signal that is computed here."""
    try:
        read = parse_strategy(name, [name])
    except ConfigError:
        return False
    return name.isidentifier() and name.isascii() and str(read) == name and bool(read.retrievers)


def _found(whose: str, places: Sequence[Scored]) -> list[ScoredId]:
    """One list. Refuse scores that rise, because the scores of a recording determine the order.

    trec_eval reads float32, so what rises by less is a tie, with the score of the place above it.
    """
    scores = np.array([score for _, score in places], dtype=np.float64)
    with np.errstate(over="ignore"):
        rounded = scores.astype(np.float32)
    if (rounded[1:] > rounded[:-1]).any():
        raise DataError(
            f"{whose}: scores rise down the list; a larger score must be better, "
            "so turn a distance d into 1 / (1 + d)"
        )
    falling = np.minimum.accumulate(scores).tolist()
    return [
        ScoredId(id_, score, place) for place, ((id_, _), score) in enumerate(zip(places, falling, strict=True), 1)
    ]
