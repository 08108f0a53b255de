"""A referee for agents that tune: half of the labelled questions to look at, the other half sealed.

Whoever tries hundreds of configurations on the same labels finds one that is better on these labels alone. So an
agent looks at one half as often as it likes, and looks are counted. The sealed half is opened once, for at most
`SHORTLIST` configurations, which are tested together (Holm). No look has seen its labels, so the number of looks
weakens no answer; a holdout that answers every look needs noise, and so more labels (Dwork et al., Science 349,
2015). Greedy agents of 500 looks with a referee and without: docs/evidence/tuning.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct

from steelyard.base.errors import PATH_WIDTH, ConfigError, DataError, quote
from steelyard.base.files import canonical, read_bytes, write_text
from steelyard.memory.query import Query
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import judged, normalised_text, unit_numbers
from steelyard_eval.recording.saved_runs import FOLDER
from steelyard_eval.result import structs
from steelyard_eval.result.structs import Message
from steelyard_eval.views.frames import Answered

FILE = "referee.json"
SHORTLIST = 5  # configurations that are tested when the seal is opened
FEWEST = 10  # labelled queries in either half
Part = Literal["look", "verdict"]


class Seal(Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept beside the data set: looks since the last verdict, and the queries that were `shown`.

    These stay open, whatever labels come later: queries that seem to ask the same may be grouped anew by them.
    """

    looks: int = 0
    shown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Referee:
    """The two halves of the labelled queries, by id; `seal` is what happened before."""

    dataset: Dataset
    seal: Seal
    open: frozenset[str]
    sealed: frozenset[str]

    @classmethod
    def of(cls, dataset: Dataset) -> "Referee":
        """Over the data set as it is now.

        Raises ConfigError for one in memory, or where a half has too few queries, and DataError where what was
        kept is damaged.
        """
        if dataset.in_memory:
            raise ConfigError(f"{dataset.called} is in memory, where nothing stays sealed; load a folder")
        path, seal = dataset.path / FOLDER / FILE, Seal()
        if path.is_file():
            try:
                seal = msgspec.json.decode(read_bytes(path), type=Seal)
            except msgspec.DecodeError as error:
                raise DataError(f"{quote(str(path), PATH_WIDTH)}: {error}; restore it from a copy") from error
        queries = judged(dataset, dataset.queries)
        sealed = drawn(queries, seal.shown)
        made = cls(dataset, seal, frozenset(query.id for query in queries) - sealed, sealed)
        if min(len(made.open), len(sealed)) < FEWEST:
            raise ConfigError(
                f"{dataset.called}: {len(made.open)} labelled queries are open and {len(sealed)} are sealed; a "
                f"referee needs {FEWEST} of each, so label more queries"
            )
        return made

    def half(self, part: Part) -> Dataset:
        """The data set with the labels of one half alone."""
        shown = self.open if part == "look" else self.sealed
        return replace(
            self.dataset, qrels={query: row for query, row in self.dataset.qrels.items() if query in shown}
        )

    def counted(self, part: Part, found: Answered) -> Answered:
        """An answer on one half, once it is counted; ConfigError for a verdict on too many contenders."""
        count = len(found.result.rows) - 1
        if part == "verdict" and count > SHORTLIST:
            raise ConfigError(
                f"a verdict is on at most {SHORTLIST} contenders, not {count}; name the best of them"
            )
        looks = self.seal.looks + (count if part == "look" else 0)
        shown = {*self.seal.shown, *self.open, *(self.sealed if part == "verdict" else ())}
        kept = Seal(looks if part == "look" else 0, tuple(sorted(shown)))
        folder = self.dataset.path / FOLDER
        folder.mkdir(exist_ok=True)
        write_text(folder / FILE, canonical(msgspec.to_builtins(kept)))
        said = Message(f"referee_{part}", {"looks": looks, "open": len(self.open), "sealed": len(self.sealed)})
        answer = structs.replace(found.result.answer, because=[said, *found.result.answer.because])
        return replace(found, result=structs.replace(found.result, answer=answer))


def drawn(queries: Sequence[Query], shown: Sequence[str] = ()) -> frozenset[str]:
    """The ids of about half of the queries, by a hash of the question, without those that were `shown`.

    Queries that vary together stay together, so one that was shown keeps the others out.
    """
    units, names = unit_numbers(queries).tolist(), dict[int, str]()
    for unit, query in zip(units, queries, strict=True):
        name = query.group or normalised_text(query.text)
        names[unit] = min(names.get(unit, name), name)
    seen = {unit for unit, query in zip(units, queries, strict=True) if query.id in shown}
    odd = {unit for unit, name in names.items() if sha256(name.encode()).digest()[0] % 2} - seen
    return frozenset(query.id for unit, query in zip(units, queries, strict=True) if unit in odd)
