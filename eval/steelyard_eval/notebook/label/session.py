"""One judge at work: what is asked, the judgments so far, saved after each; to be continued at any time."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from steelyard.base.arrays import Indices
from steelyard.base.errors import PATH_WIDTH, ConfigError, quote
from steelyard.base.fields import format_time
from steelyard.base.files import STRICT_JSON, read_text, write_texts
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard_eval.choose.blockers import MIN_TO_SHIP
from steelyard_eval.datasets.second_labels import TEN
from steelyard_eval.measures.judgments import UNJUDGED
from steelyard_eval.notebook.label.judgment_file import GRADES, NOTHING, Judgment, Pair, judgments_of, text_digest
from steelyard_eval.notebook.label.pool import SECOND, STREAM, Pool, drawn_queries, fully_labelled
from steelyard_eval.recording.saved_runs import SavedRun

JUDGE = "judge"
CANNOT_SAY = -2
LEFT_NOTE = "left with its query"
QUERIES, QRELS = "queries.jsonl", ".qrels.txt"
Grades = dict[str, dict[str, int]]  # query -> entry -> grade


class Session:
    """The judgments of one judge on a pool, in a folder.

    ``<judge>.jsonl`` has a line a judgment, in the order given. ``<judge>.qrels.txt`` has the grades of the data
    set and these, ready to replace its qrels.txt; of queries that are drawn, those that are judged in full. Where
    queries were said to have no answer, ``<judge>.queries.jsonl`` has those of the data set with that. All are
    written whole after every judgment.

    Raises ConfigError for a name that is none, judgments of another data set, another judge without judgments,
    and a second judge of queries drawn at random; DataError, with the line, for a file without judgments.

    Parameters
    ----------
    pool: What is judged.
    folder: Where judgments are kept; what is there already is continued.
    judge: The name of the judge: letters, digits, ``.``, ``_``, ``-``.
    second_judge_of: Judge again what this judge judged, shuffled, without seeing the grades. If there is no such
        judge, ten labelled pairs of the data set. If empty, the pool.
    now: The time in seconds UTC.
    random: The queries are drawn at random, and their grades are labels once they are judged in full.
    labelled: Ask of queries that had been drawn before, too, what has no label; they come last.
    """

    enough = MIN_TO_SHIP  # labelled queries from which on they decide
    decided: SavedRun | None = None  # the last recommend on the labels that the data set has

    def __init__(
        self,
        pool: Pool,
        folder: Path,
        judge: str = JUDGE,
        second_judge_of: str = "",
        now: Callable[[], float] = time.time,
        random: bool = False,
        labelled: bool = False,
    ) -> None:
        for name in (judge, second_judge_of or judge):
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,60}", name):
                raise ConfigError(f"{quote(name)} is not a valid judge; use letters, digits, dots and dashes")
        if judge == second_judge_of:
            raise ConfigError(f"{judge} cannot be their own second judge; add another name with --judge")
        if second_judge_of and random:
            raise ConfigError(f"a second judge labels the pairs of {second_judge_of}; leave out --random")
        self.pool = pool
        self.folder = folder
        self.judge = judge
        self.random = random
        self._now = now
        self._entries = {entry.id: entry for entry in pool.dataset.entries}
        self.given = judgments_of(pool.dataset, self.file)
        self.first = judgments_of(pool.dataset, folder / f"{second_judge_of}.jsonl") if second_judge_of else {}
        if second_judge_of and not self.first:  # the labels of the data set, a few of them
            self.first = ten_of(pool)
        if second_judge_of and not self.first:
            raise ConfigError(f"{second_judge_of} has no labels in {quote(str(folder), PATH_WIDTH)}; label first")
        self.order = self._order(labelled)

    @property
    def file(self) -> Path:
        """Where this judge's judgments are."""
        return self.folder / f"{self.judge}.jsonl"

    @property
    def qrels(self) -> Path:
        """The grades of the data set and of this judge, as a qrels file."""
        return self.folder / f"{self.judge}{QRELS}"

    @cached_property
    def pairs_by_query(self) -> dict[str, list[Pair]]:
        """The pairs that are asked, judged or not, by query and in order."""
        asked: dict[str, list[Pair]] = {}
        for pair in map(self.pool.pair, self.order.tolist()):
            asked.setdefault(pair[0], []).append(pair)
        return asked

    @property
    def screens(self) -> dict[str, list[Pair]]:
        """What is judged on one screen, by query and in order."""
        return self.pairs_by_query

    @property
    def next(self) -> Pair | None:
        """The first pair that is not judged; None when all are."""
        return next(self.upcoming(), None)

    def upcoming(self) -> Iterator[Pair]:
        """The pairs that are not judged, in order."""
        return (pair for pairs in self.pairs_by_query.values() for pair in pairs if not self.judged(pair))

    def judged(self, pair: Pair) -> bool:
        """Whether there is an answer to a pair, or to its query as a whole."""
        return pair in self.given or (pair[0], NOTHING) in self.given

    @property
    def left(self) -> int:
        """How many pairs are not judged yet."""
        return sum(not self.judged(pair) for pairs in self.pairs_by_query.values() for pair in pairs)

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

    def give(self, grade: int | None, note: str = "", pair: Pair | None = None) -> None:
        """Judge a pair, the next one by default, and save; None says that it cannot be told, and is no label.

        Another grade takes the place of an earlier one, and of the answer that nothing answers the query. Raises
        ConfigError for a grade outside 0..3, for a pair that is not asked, and when everything is judged.
        """
        if grade is not None and grade not in GRADES:
            raise ConfigError(f"grade {quote(grade)} is none of {', '.join(map(str, GRADES))}")
        wanted = self._wanted(pair)
        before = {wanted, (wanted[0], NOTHING)}
        kept = {pair: one for pair, one in self.given.items() if pair not in before}
        self._save({**kept, wanted: self._judgment(wanted, wanted[1], grade, note.strip())})

    def nothing(self, pair: Pair | None = None) -> None:
        """Say that nothing in the memory answers the query of a pair, and save. See `give` for errors."""
        wanted = self._wanted(pair)
        self._save({**self.given, (wanted[0], NOTHING): self._judgment(wanted, NOTHING, None, "")})

    def leave(self, query: str) -> None:
        """Be done with a query: of what is not judged it cannot be told. Saved at once."""
        left = [pair for pair in self.pairs_by_query[query] if not self.judged(pair)]
        if left:
            self._save({**self.given, **{pair: self._judgment(pair, pair[1], None, LEFT_NOTE) for pair in left}})

    def _judgment(self, pair: Pair, entry: str, grade: int | None, note: str) -> Judgment:
        query, read = self.shown(pair)
        name, when = self.pool.dataset.path.name, format_time(self._now())
        digest = "" if entry == NOTHING else text_digest(read)
        return Judgment(pair[0], entry, grade, note, when, name, query.text, digest, self.random)

    def _wanted(self, pair: Pair | None) -> Pair:
        wanted = pair or self.next
        if wanted is None:
            raise ConfigError("all pairs are labelled; add contenders or queries")
        if wanted not in self.pairs_by_query.get(wanted[0], ()):
            raise ConfigError(f"{quote(' '.join(wanted))} is not one of the {len(self.pool)} pairs here; name one")
        return wanted

    def undo(self) -> list[Judgment]:
        """Take the last answer back, and save; leaving a query is one answer. Empty without any.

        A label that the data set has of it stays there until another grade is applied.
        """
        given, back = [*self.given.values()], list[Judgment]()
        left = {(one.query, one.note) for one in given[-1:] if one.note == LEFT_NOTE}
        while given and (not back or (given[-1].query, given[-1].note) in left):
            back.append(given.pop())
        if back:
            self._save({(one.query, one.entry): one for one in given})
        return back

    @property
    def waiting(self) -> list[Pair]:
        """The pairs with a grade that is no label yet, because their query is not judged in full."""
        labels = self.labels
        return [pair for pair, grade in self.held(self.given).items() if grade != _grade(labels, pair)]

    def grades(self, given: Mapping[Pair, Judgment] | None = None) -> Indices:
        """int64[P]: the grades of the pool, the data set's and this judge's; -1 for pairs without one.

        `CANNOT_SAY` stands for those of which the judge cannot say, and for the rest of a query without an answer.
        """
        judged = (self.given if given is None else given).items()
        grades = self.pool.known.copy()
        for pair, judgment in judged:
            if pair in self.pool.places:
                grades[self.pool.places[pair]] = CANNOT_SAY if judgment.grade is None else judgment.grade
        nothing = {query for (query, entry), _ in judged if entry == NOTHING}
        without = np.array([query.id in nothing for query in self.pool.queries], dtype=bool)
        grades[without[self.pool.query] & (grades == UNJUDGED)] = CANNOT_SAY
        return grades

    def _order(self, labelled: bool) -> Indices:
        """int64[n]: the pairs to ask, one query after the other, shuffled within each.

        A second judge is asked what the first judged, shuffled anew.
        """
        pool, stream = self.pool, SECOND if self.first else STREAM
        given, drawn = self.first or self.given, np.zeros(len(pool.queries), dtype=bool)
        own = np.array([pool.pair(at) in given for at in range(len(pool))], dtype=bool)
        drawn[drawn_queries(pool)] = True
        drawn[pool.query[own]] = True  # what was judged stays where it was
        open_ = (pool.known < 0) & (labelled | drawn[pool.query])
        pairs = np.flatnonzero(own if self.first else own | open_)
        keys = np.random.default_rng([pool.seed, stream, 1]).random(len(pool))
        lots = (keys, pool.lots(stream)[pool.query], ~drawn[pool.query])
        return pairs[np.lexsort([lot[pairs] for lot in lots])]

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
        whole = fully_labelled(pool, self.grades(given)).tolist() if self.random else range(len(pool.queries))
        fair = pool.dataset.random_queries | {pool.queries[query].id for query in whole}
        for (query, entry), grade in self.held(given).items():
            if query in fair or not self.random:
                labels.setdefault(query, {})[entry] = grade
        return labels

    def held(self, given: Mapping[Pair, Judgment]) -> dict[Pair, int]:
        """The grades of pairs that the data set has; an update may have removed others, whose judgments stay."""
        asked = {query.id for query in self.pool.dataset.queries}
        there = ((pair, one.grade) for pair, one in given.items() if pair[0] in asked and pair[1] in self._entries)
        return {pair: grade for pair, grade in there if grade is not None}


def ten_of(pool: Pool) -> dict[Pair, Judgment]:
    """Pairs that the data set has labels of, drawn by the seed of the pool, as if they had been judged here.

    Half of them are relevant where there are so many: ten zeros would tell nothing.
    """
    drawn = np.random.default_rng([pool.seed, SECOND]).permutation(np.flatnonzero(pool.known >= 0))
    some = np.isin(drawn, drawn[pool.known[drawn] > 0][: TEN // 2])
    drawn = drawn[np.argsort(~some, kind="stable")][:TEN]
    pairs = {pool.pair(int(at)): int(pool.known[at]) for at in drawn}
    return {pair: Judgment(*pair, grade, "", "") for pair, grade in pairs.items()}


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
