"""One judge at work: the next pair, the judgments so far, saved after each; to be continued at any time."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import msgspec
import numpy as np

from steelyard.base.arrays import Indices
from steelyard.base.errors import PATH_WIDTH, ConfigError, shown
from steelyard.base.fields import format_time
from steelyard.base.files import STRICT_JSON, read_text, write_texts
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard_eval.choose.blockers import FEWEST
from steelyard_eval.measures.judgments import UNJUDGED
from steelyard_eval.notebook.label.judgment_file import GRADES, NOTHING, Judgment, Pair, judgments_of, text_digest
from steelyard_eval.notebook.label.pool import Pool, drawn_order, judged_whole
from steelyard_eval.recording.saved_runs import KeptRun

JUDGE = "judge"
UNSURE = -2
"""In place of a grade: asked, and the judge cannot say."""
QUERIES, QRELS = "queries.jsonl", ".qrels.txt"
Grades = dict[str, dict[str, int]]
"""Query -> entry -> grade."""


class Session:
    """The judgments of one judge on a pool, in a folder.

    ``<judge>.jsonl`` has a line a judgment, in the order given. ``<judge>.qrels.txt`` has the grades of the data
    set and these, ready to replace its qrels.txt; of queries that are drawn, those that are judged in full. Where
    queries were said to have no answer, ``<judge>.queries.jsonl`` has those of the data set with that. All are
    written whole after every judgment.

    Raises ConfigError for a name that is none, judgments of another data set, another judge who has judged nothing
    here, and a second judge of queries drawn at random; DataError for a file that does not hold judgments, naming
    its line.

    Parameters
    ----------
    pool: What is judged.
    folder: Where judgments are kept; what is there already is continued.
    judge: The name of the judge: letters, digits, ``.``, ``_``, ``-``.
    second_to: Judge what another judge has judged, shuffled anew and without seeing the grades; empty to judge the
        pool.
    now: The time in seconds UTC.
    random: Judge whole queries that are drawn at random, instead of the pairs that tell most.
    """

    unsure: ClassVar[int | None] = UNSURE
    """What `grades` has where the judge cannot say; None where such pairs stay without a grade."""
    enough = FEWEST
    """Labelled queries from which on they decide."""
    decided: KeptRun | None = None
    """The last recommend on the labels that the data set has."""

    def __init__(
        self,
        pool: Pool,
        folder: Path,
        judge: str = JUDGE,
        second_to: str = "",
        now: Callable[[], float] = time.time,
        random: bool = False,
    ) -> None:
        for name in (judge, second_to or judge):
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,60}", name):
                raise ConfigError(f"judge {shown(name)} must be letters, digits, dots, dashes; name another")
        if judge == second_to:
            raise ConfigError(f"{judge} cannot be second to themselves; give the second judge another name")
        if second_to and random:
            raise ConfigError(f"a second judge sees what {second_to} has judged; leave out --random")
        self.pool = pool
        self.folder = folder
        self.judge = judge
        self.random = random
        self._now = now
        self._entries = {entry.id: entry for entry in pool.dataset.entries}
        self.given = judgments_of(pool.dataset, self.file)
        self.first = judgments_of(pool.dataset, folder / f"{second_to}.jsonl") if second_to else {}
        if second_to and not self.first:
            raise ConfigError(f"{second_to} has judged nothing in {shown(str(folder), PATH_WIDTH)}; judge first")
        self.order = self._order()
        self.passed: set[Pair] = set()
        self._back: list[Pair] = []

    @property
    def file(self) -> Path:
        """Where this judge's judgments are."""
        return self.folder / f"{self.judge}.jsonl"

    @property
    def qrels(self) -> Path:
        """The grades of the data set and of this judge, as a qrels file."""
        return self.folder / f"{self.judge}{QRELS}"

    @property
    def next(self) -> Pair | None:
        """The pair to judge now; None when all are judged."""
        return next(self.upcoming(), None)

    def upcoming(self) -> Iterator[Pair]:
        """The pairs to judge, from the next one on: what was taken back, the last first, before all others."""
        back = [pair for pair in reversed(self._back) if not self._past(pair)]
        yield from back
        yield from (pair for pair in self._in_order() if pair not in back)

    def _in_order(self) -> Iterator[Pair]:
        """The pairs to judge, without regard to what was taken back."""
        return (pair for pair in map(self.pool.pair, self.order.tolist()) if not self._past(pair))

    def _past(self, pair: Pair) -> bool:
        return pair in self.passed or self._judged(pair)

    def _judged(self, pair: Pair) -> bool:
        return pair in self.given or (pair[0], NOTHING) in self.given

    @property
    def left(self) -> int:
        """How many pairs are not judged yet."""
        asked = {*map(self.pool.pair, self.order.tolist()), *self._back}
        return sum(not self._judged(pair) for pair in asked)

    @property
    def unanswerable(self) -> list[str]:
        """The queries of which this judge says that nothing answers them."""
        return [query for query, entry in self.given if entry == NOTHING]

    def counted(self) -> tuple[int, int, int]:
        """The labels that the qrels file holds, how many this judge gave, how many of these are new."""
        labels, held = self.labels, self.pool.dataset.qrels
        own = [
            pair for pair, one in self.given.items() if one.grade is not None and _grade(labels, pair) is not None
        ]
        new = [pair for pair in own if _grade(labels, pair) != _grade(held, pair)]
        return sum(map(len, labels.values())), len(own), len(new)

    def shown(self, pair: Pair) -> tuple[Query, Entry]:
        """The query and the entry of a pair; an entry that only a foreign list names has its id alone."""
        query = self.pool.queries[self.pool.query[self.pool.places[pair]]]
        return query, self._entries.get(pair[1]) or Entry(pair[1])

    def skip(self, pair: Pair | None = None) -> None:
        """Pass the next pair over; it is asked again when the session is opened again. See `give` for errors."""
        self.passed.add(self._wanted(pair))

    def give(self, grade: int | None, note: str = "", pair: Pair | None = None) -> None:
        """Judge the next pair, and save; None says that it cannot be told, and is no label.

        Raises ConfigError for a grade outside 0..3, for a pair that is not the next one (a key that was pressed
        twice), and when everything is judged.
        """
        if grade is not None and grade not in GRADES:
            raise ConfigError(f"grade {shown(grade)} is none of {', '.join(map(str, GRADES))}")
        wanted = self._wanted(pair)
        self._save({**self.given, wanted: self._judgment(wanted, wanted[1], grade, note.strip())})

    def nothing(self, pair: Pair | None = None) -> None:
        """Say that nothing in the memory answers the query of the next pair, and save. See `give` for errors."""
        wanted = self._wanted(pair)
        self._save({**self.given, (wanted[0], NOTHING): self._judgment(wanted, NOTHING, None, "")})

    def _judgment(self, pair: Pair, entry: str, grade: int | None, note: str) -> Judgment:
        """What is kept of an answer: of the entry of the pair, or that nothing answers its query."""
        query, read = self.shown(pair)
        name, when = self.pool.dataset.path.name, format_time(self._now())
        digest = "" if entry == NOTHING else text_digest(read)
        return Judgment(pair[0], entry, grade, note, when, name, query.text, digest, self.random)

    def _wanted(self, pair: Pair | None) -> Pair:
        """The next pair, if that is the one that was shown."""
        wanted = self.next
        if wanted is None:
            raise ConfigError("everything is judged; add contenders or queries to judge more")
        if pair is not None and pair != wanted:
            raise ConfigError("this pair is judged already; undo takes it back")
        return wanted

    def undo(self) -> Pair | None:
        """Take the last judgment back, and save; the pair is the next one again. None without any.

        A label that the data set has of it stays there until another grade is applied. What was skipped stays
        skipped.
        """
        if not self.given:
            return None
        *kept, last = self.given
        self._save({pair: self.given[pair] for pair in kept})
        # where nothing was said to answer, the first pair of the query: those before it were past then, too
        same = (pair for pair in self._in_order() if pair[0] == last[0])
        again = next(same, last) if last[1] == NOTHING else last
        self._back += [again] if again in self.pool.places else []
        return last

    @property
    def waiting(self) -> list[Pair]:
        """The pairs with a grade that is no label yet, because their query is not judged in full."""
        labels = self.labels
        return [pair for pair, one in self.given.items() if one.grade not in (None, _grade(labels, pair))]

    def grades(self, given: Mapping[Pair, Judgment] | None = None) -> Indices:
        """int64[P]: the grades of the pool, the data set's and this judge's; -1 for pairs without one.

        `unsure` stands for those of which the judge cannot say, and for the others of a query without an answer.
        """
        judged = (self.given if given is None else given).items()
        grades = self.pool.known.copy()
        for pair, judgment in judged:
            grade = self.unsure if judgment.grade is None else judgment.grade
            if pair in self.pool.places and grade is not None:
                grades[self.pool.places[pair]] = grade
        if self.unsure is not None:
            nothing = {query for (query, entry), _ in judged if entry == NOTHING}
            without = np.array([query.id in nothing for query in self.pool.queries], dtype=bool)
            grades[without[self.pool.query] & (grades == UNJUDGED)] = self.unsure
        return grades

    def _order(self) -> Indices:
        """int64[n]: the pairs to ask, in order; of a second judge what the first judged, shuffled."""
        if not self.first:
            return drawn_order(self.pool) if self.random else self.pool.order
        known = [self.pool.places[pair] for pair in self.first if pair in self.pool.places]
        order: Indices = np.random.default_rng([self.pool.seed, 2]).permutation(np.array(known, dtype=np.int64))
        return order

    def _save(self, given: dict[Pair, Judgment]) -> None:
        texts = {self.file: lines(given), self.qrels: qrels_text(self._labels(given))}
        write_texts({**texts, **self._marked(given)})
        self.given = given

    def _marked(self, given: Mapping[Pair, Judgment]) -> dict[Path, str]:
        """The queries of the data set, those marked that nothing answers; no file where none is or was."""
        marked = {query for query, entry in given if entry == NOTHING}
        source, target = self.pool.dataset.path / QUERIES, self.folder / f"{self.judge}.{QUERIES}"
        if not source.is_file() or not (marked or target.exists()):
            return {}
        rows = (STRICT_JSON.decode(line) for line in read_text(source).splitlines() if line.strip())
        named = ({**row, "answerable": False} if row.get("id", row.get("_id")) in marked else row for row in rows)
        return {target: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in named)}

    @property
    def labels(self) -> Grades:
        """The labels that the data set has now, and those of this judge."""
        return self._labels(self.given)

    def _labels(self, given: Mapping[Pair, Judgment]) -> Grades:
        pool, labels = self.pool, {query: dict(known) for query, known in self.pool.dataset.qrels.items()}
        whole = judged_whole(pool, self.grades(given)).tolist() if self.random else range(len(pool.queries))
        fair = pool.dataset.drawn | {pool.queries[query].id for query in whole}
        for (query, entry), one in given.items():
            if one.grade is not None and (query in fair or not self.random):
                labels.setdefault(query, {})[entry] = one.grade
        return labels


def qrels_text(labels: Grades) -> str:
    """A file of labels, a line each."""
    return "".join(f"{query} 0 {id_} {grade}\n" for query, row in labels.items() for id_, grade in row.items())


def lines(given: Mapping[Pair, Judgment]) -> str:
    """A file of judgments, a line each."""
    return "".join(
        json.dumps(msgspec.structs.asdict(judgment), ensure_ascii=False) + "\n" for judgment in given.values()
    )


def _grade(labels: Mapping[str, Mapping[str, int]], pair: Pair) -> int | None:
    return labels.get(pair[0], {}).get(pair[1])
