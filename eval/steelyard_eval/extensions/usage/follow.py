"""What followed a search: which of its entries were opened, cited, used, and whether the question was asked again.

Strong evidence is a citation or a tool that used the entry, medium that the question was asked again, weak that an
entry was shown (the tiers of system-spec-kit's ledger). A wrong act teaches a wrong weight, a missed one only asks
for more use: what is doubtful counts as nothing. So no act is inferred from

- the title of an entry in what repeats the question, or in a list of what was found;
- a sentence that says an entry is of no use;
- a title of one or two words, unless it stands in quotes or emphasis;
- an edited file that the person named, that was edited before the search, or that belongs to many entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from steelyard_eval.extensions.usage.corpus import Corpus
from steelyard_eval.extensions.usage.session import (
    AgentSaid,
    EntriesChanged,
    EntriesOpened,
    Event,
    Kept,
    PersonAsked,
    Rated,
    Searched,
    Wrote,
)
from steelyard_eval.extensions.usage.wording import (
    FENCED,
    GOES_ON,
    USELESS,
    Sentence,
    content_words,
    file_name,
    has_id,
    has_title,
    is_inside,
    is_same_file,
    is_untold,
    persons_words,
    plain_words,
    runs_of,
    sentences,
)

OPEN = 20
"""Searches of a session that later events may belong to."""
TURNS = 1
"""Questions of a person after which what is said or edited still belongs to a search."""
MANY_FILES = 3
"""Entries of one list that an edited file may belong to; more say nothing of any."""
LISTED = 0.5
"""A message that names more than this share of a list, and more than two, tells what was found."""
LOOKED_AT = 100
"""Entries of a list of which somebody may speak; nobody reads more."""
MOST_LOOKS = 100_000
"""Pairs of a sentence and an entry that it may name, of what is said at once and one list."""
LONGEST_SAID = 200_000
"""Characters of what is said, asked, kept or written at once that are looked at; a model says less at once."""
MOST_RUNS = 50_000
"""Runs of words of one list by which its entries are recognised, shared by them."""
MOST_PATHS = 100
"""Files of one edit, and files of one name that were touched, that are looked at."""
SAME = 2
"""Words of one question in the next, from which on it is the same one, asked again."""
STRENGTH = {"cited": "strong", "used": "strong", "opened": "strong", "modified": "strong", "none_useful": "medium"}
"""The tier of what is inferred; acts that somebody reported are strong."""
_RANK = ("opened", "cited", "used", "modified")
"""What counts where several acts fall on one entry: the last of these, and a report before all."""


@dataclass
class Followed:
    """A search with what was inferred of it: at most one act an entry, by the names of its list.

    `asked_again` is whether the same was asked once more; `useless` whether that says that the list was of no use.
    """

    search: Searched
    acts: dict[str, str] = field(default_factory=dict)
    asked_again: bool = False
    useless: bool = False


@dataclass
class _Open(Followed):
    turn: int = 0
    said_before: str = ""
    asked: str = ""
    """The plain words of `said_before`."""
    touched: int = 0
    """How many files had been touched before."""
    places: dict[str, str] = field(default_factory=dict)
    """Id of the corpus -> the name of the hit."""
    helped: bool = False
    """Whether an entry of this list was asked for by its title, or used when a later list showed it again."""
    titles: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Id -> the title and its plain words, of what somebody may speak of."""
    runs: dict[str, str] | None = None
    """Run of words -> the id whose own it is; empty for one of several entries."""
    files: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Name of a file -> the paths that it has, and the entries that they belong to."""


def followed(events: Iterable[Event], corpus: Corpus) -> Iterator[Followed]:
    """The searches of a session with what followed each, in the order in which they were made."""
    session = _Session(corpus)
    for event in events:
        yield from session.take(event)
    yield from session.rest()


class _Session:
    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._open: list[_Open] = []
        self._turn = 0
        self._asked = ""
        self._told = ""
        self._kept = ""
        self._touched: dict[str, dict[str, int]] = {}
        self._touches = 0
        self._blind = -1

    def take(self, event: Event) -> Iterator[Followed]:
        """One event; the searches that nothing can follow any more."""
        match event:
            case Searched():
                yield from self._search(event)
            case PersonAsked():
                if words := persons_words(event.text[:LONGEST_SAID]):
                    self._turn += 1
                    self._asked = words
                    self._told = plain_words(words)
            case AgentSaid():
                self._said(FENCED.sub("\n", event.text[:LONGEST_SAID]), "cited")
            case Kept():
                self._kept = f"{self._kept} {plain_words(event.text[:LONGEST_SAID])}"[-LONGEST_SAID:]
            case EntriesOpened():
                self._named(event.names, "opened")
                self._touch(event.names if len(event.names) == 1 else ())
            case EntriesChanged():
                self._named(event.names, "modified")
            case Rated():
                self._rated(event)
            case Wrote():
                self._wrote(event)

    def rest(self) -> Iterator[Followed]:
        """What is still open."""
        yield from map(_settled, self._open)

    def _search(self, search: Searched) -> Iterator[Followed]:
        places: dict[str, str] = {}
        for hit in search.hits or ():
            if (id_ := self._corpus.names.named(hit.name)) is not None:
                places.setdefault(id_, hit.name)
        call = _Open(search, turn=self._turn, places=places, touched=self._touches)
        call.said_before = f"{self._asked}\n{search.query[:LONGEST_SAID]}"
        call.asked = plain_words(call.said_before)
        shown = {hit.name: hit.title for hit in search.hits or () if hit.title}
        for id_ in islice(places, LOOKED_AT):
            title = shown.get(places[id_]) or self._corpus.title(id_)
            call.titles[id_] = title, plain_words(title)
            for path in self._corpus.files(id_):
                call.files.setdefault(file_name(path), []).append((path, id_))
        if (before := self._last()) is not None and self._again(before, search):
            before.asked_again = True
            wanted = plain_words(search.query)
            before.helped = any(plain_words(self._corpus.title(id_)) == wanted for id_ in before.places)
        self._open.append(call)
        if search.hits is None:
            self._blind = len(self._open) - 1  # what is opened now may be of a list that nobody recorded
        if len(self._open) > OPEN:
            self._blind -= 1
            yield _settled(self._open.pop(0))

    def _last(self) -> _Open | None:
        """The search before, of the same turn."""
        return self._open[-1] if self._open and self._open[-1].turn == self._turn else None

    def _again(self, before: _Open, search: Searched) -> bool:
        """Whether a search asks the same once more: words of the question before, and nothing used of its list."""
        if before.acts or before.search.hits is None:
            return False
        old, new = content_words(before.search.query), content_words(search.query)
        shared = len(old & new)
        same = plain_words(before.search.query) == plain_words(search.query)
        return not same and (shared >= SAME or (shared > 0 and shared * 2 >= min(len(old), len(new))))

    def _holding(self, id_: str) -> _Open | None:
        """The last search that showed an entry."""
        return next((call for call in reversed(self._open[self._blind + 1 :]) if id_ in call.places), None)

    def _act(self, call: _Open, id_: str, action: str) -> None:
        name = call.places[id_]
        before = call.acts.get(name)
        if before is None or (before in _RANK and _RANK.index(before) < _RANK.index(action)):
            call.acts[name] = action
        for other in self._open:
            other.helped |= id_ in other.places

    def _named(self, names: Sequence[str], action: str) -> None:
        """Entries that a tool was given; all of a list at once tell none of them from the others."""
        calls: dict[int, tuple[_Open, list[str]]] = {}
        for name in names:
            id_ = self._corpus.names.named(name)
            call = self._holding(id_) if id_ is not None else None
            if call is not None and id_ is not None:
                calls.setdefault(id(call), (call, []))[1].append(id_)
        for call, ids in calls.values():
            if not _is_listing(len(set(ids)), len(call.places)):
                for id_ in ids:
                    self._act(call, id_, action)

    def _rated(self, event: Rated) -> None:
        if not event.name:
            for call in reversed(self._open):
                if event.search in ("", call.search.key):
                    call.useless = True
                    return
            return
        id_ = self._corpus.names.named(event.name)
        for call in reversed(self._open):
            if id_ in call.places and event.search in ("", call.search.key):
                call.acts[call.places[str(id_)]] = event.action
                return

    def _wrote(self, event: Wrote) -> None:
        """Files that entries are about, and entries that are named in what was written."""
        for path in event.paths[:MOST_PATHS]:
            name = file_name(path)
            for call in self._recent():
                about = [id_ for other, id_ in call.files.get(name, ()) if is_same_file(path, other)]
                ids = list(dict.fromkeys(about))
                if ids and len(ids) < MANY_FILES and not self._known(path, call) and name not in call.said_before:
                    if name not in self._asked:
                        for id_ in ids:
                            self._act(call, id_, "used")
                    break
        self._touch(event.paths)
        if event.text:
            self._said(event.text[:LONGEST_SAID], "used")

    def _touch(self, paths: Sequence[str]) -> None:
        for path in paths[:MOST_PATHS]:
            alike = self._touched.setdefault(file_name(path), {})
            if len(alike) < MOST_PATHS:
                alike.setdefault(path, self._touches)
            self._touches += 1

    def _known(self, path: str, call: _Open) -> bool:
        """Whether a file had been touched before a search."""
        alike = self._touched.get(file_name(path), {})
        before = [other for other, touch in alike.items() if touch < call.touched]
        return any(is_same_file(path, other) or is_same_file(other, path) for other in before)

    def _recent(self) -> list[_Open]:
        return [call for call in reversed(self._open[self._blind + 1 :]) if self._turn - call.turn <= TURNS]

    def _said(self, text: str, action: str) -> None:
        """Entries that a text cites: by id, by title, or by their own words."""
        parts = sentences(text)
        whole = Sentence.around(text, parts)
        seen: set[str] = set()
        for call in self._recent():
            cited, refused = self._cited(call, parts, whole)
            # Even a title of common words counts here: a text that has most titles only lists what was found.
            mentioned = {id_ for id_, (_, name) in call.titles.items() if name and f" {name} " in whole.plain}
            if not _is_listing(len(cited | refused | mentioned), len(call.places)):
                for id_ in sorted(cited - seen):
                    self._act(call, id_, action)
            for id_ in refused - cited:
                if call.acts.get(call.places[id_]) == "opened":
                    del call.acts[call.places[id_]]
            seen |= set(call.places)

    def _cited(self, call: _Open, parts: Sequence[Sentence], whole: Sentence) -> tuple[set[str], set[str]]:
        """Which entries of a list the parts of the `whole` cite, and which they turn down."""
        asked = f" {call.asked} {self._told} {self._kept} "
        cited: set[str] = set()
        refused: set[str] = set()
        if call.runs is None:
            call.runs = self._runs(call)
        repeated = Counter(name for _, name in call.titles.values())
        untold = {id_: is_untold(title, name, asked) for id_, (title, name) in call.titles.items()}
        named = [
            (id_, call.places[id_], title, name)
            for id_, (title, name) in call.titles.items()
            if (name and name in whole.plain) or has_id(whole, id_) or has_id(whole, call.places[id_])
        ]
        most = MOST_LOOKS // max(len(named), 1)
        for i, sentence in enumerate(parts):
            mentions: dict[str, str] = {}
            for run in sentence.runs:
                if (id_ := call.runs.get(run, "")) and run not in asked:
                    mentions.setdefault(id_, run)
            for id_, place, title, name in named if i < most else ():
                if has_id(sentence, id_) or has_id(sentence, place):
                    mentions[id_] = ""
                elif untold[id_] and repeated[name] == 1 and has_title(sentence, title, name):
                    mentions[id_] = name
            longest = [id_ for id_, name in mentions.items() if not is_inside(name, mentions.values())]
            for id_ in longest:
                after = parts[i + 1].text if i + 1 < len(parts) else ""
                about = sentence.text.casefold().replace(call.titles[id_][0].casefold(), " ")
                about = f"{about} {after}" if GOES_ON.match(after) else about
                (refused if USELESS.search(about) else cited).add(id_)
        return cited, refused

    def _runs(self, call: _Open) -> dict[str, str]:
        """Of each entry the runs of words that are its own, and in no other entry of the list."""
        shown = {hit.name: hit.text for hit in call.search.hits or ()}
        most = MOST_RUNS // max(len(call.titles), 1)
        runs: dict[str, str] = {}
        for id_ in call.titles:
            texts = (shown.get(call.places[id_], ""), *self._corpus.texts(id_))
            for run in islice((run for text in texts for run in runs_of(text)), most):
                runs[run] = id_ if runs.get(run, id_) == id_ else ""
        return runs


def _settled(call: _Open) -> Followed:
    """A search that nothing follows any more: asked again counts where nothing of the list was of use later."""
    useless = call.useless or (call.asked_again and not call.helped)
    return Followed(call.search, call.acts, call.asked_again, useless and not call.acts)


def _is_listing(named: int, shown: int) -> bool:
    return named > 2 and named > LISTED * shown
