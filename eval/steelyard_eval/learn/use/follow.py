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
from pathlib import PurePosixPath

from steelyard.memory.entry import Entry
from steelyard_eval.compare.mentioned import Mentioned
from steelyard_eval.learn.use.session import (
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
from steelyard_eval.learn.use.wording import (
    FENCED,
    GOES_ON,
    SENTENCE,
    TOKEN,
    USELESS,
    content_words,
    has_id,
    has_title,
    is_inside,
    is_same_file,
    plain_words,
    runs_of,
)

OPEN = 20
"""Searches of a session that later events may belong to."""
TURNS = 1
"""Questions of a person after which what is said or edited still belongs to a search."""
MANY_FILES = 3
"""Entries of one list that an edited file may belong to; more say nothing of any."""
LISTED = 0.5
"""A message that names more than this share of a list, and more than two, tells what was found."""
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
    touched: frozenset[str] = frozenset()
    places: dict[str, str] = field(default_factory=dict)
    """Id of the corpus -> the name of the hit."""
    helped: bool = False
    """Whether an entry of this list was asked for by its title, or used when a later list showed it again."""


class Corpus:
    """What the data set knows of the entries that a list names."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.names = Mentioned(entries)
        self._by_id = {entry.id: entry for entry in entries}
        self._files = Counter(path for entry in entries for path in _files(entry))

    def __contains__(self, name: str) -> bool:
        return name in self._by_id

    def title(self, id_: str) -> str:
        """The title of an entry; empty where there is none."""
        return self._by_id[id_].title if id_ in self._by_id else ""

    def texts(self, id_: str) -> Iterator[str]:
        """What an entry says."""
        if (entry := self._by_id.get(id_)) is not None:
            yield from filter(None, (entry.text, entry.why, entry.impact, entry.details, entry.context, entry.l1))

    def files(self, id_: str) -> tuple[str, ...]:
        """The files that an entry is about."""
        return _files(self._by_id[id_]) if id_ in self._by_id else ()


def _files(entry: Entry) -> tuple[str, ...]:
    found: list[str] = []
    for name in ("related_files", "files_modified", "files", "applies_to"):
        value = entry.extra.get(name)
        found += [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
    return tuple(one for one in found if "/" in one or "." in one)


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
        self._kept = ""
        self._touched: set[str] = set()
        self._blind = -1

    def take(self, event: Event) -> Iterator[Followed]:
        """One event; the searches that nothing can follow any more."""
        match event:
            case Searched():
                yield from self._search(event)
            case PersonAsked():
                self._turn += 1
                self._asked = event.text
            case AgentSaid():
                self._said(FENCED.sub("\n", event.text), "cited")
            case Kept():
                self._kept += "\n" + event.text
            case EntriesOpened():
                self._named(event.names, "opened")
                self._touched.update(event.names if len(event.names) == 1 else ())
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
        own = _Open(search, turn=self._turn, places=places, touched=frozenset(self._touched))
        own.said_before = f"{self._asked}\n{search.query}"
        if (before := self._last()) is not None and self._again(before, search):
            before.asked_again = True
            wanted = plain_words(search.query)
            before.helped = any(plain_words(self._corpus.title(id_)) == wanted for id_ in before.places)
        self._open.append(own)
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
        return next((own for own in reversed(self._open[self._blind + 1 :]) if id_ in own.places), None)

    def _act(self, own: _Open, id_: str, action: str) -> None:
        name = own.places[id_]
        before = own.acts.get(name)
        if before is None or (before in _RANK and _RANK.index(before) < _RANK.index(action)):
            own.acts[name] = action
        for other in self._open:
            other.helped |= id_ in other.places

    def _named(self, names: Sequence[str], action: str) -> None:
        """Entries that a tool was given; all of a list at once tell none of them from the others."""
        found: dict[int, tuple[_Open, list[str]]] = {}
        for name in names:
            id_ = self._corpus.names.named(name)
            own = self._holding(id_) if id_ is not None else None
            if own is not None and id_ is not None:
                found.setdefault(id(own), (own, []))[1].append(id_)
        for own, ids in found.values():
            if not _is_listing(len(set(ids)), len(own.places)):
                for id_ in ids:
                    self._act(own, id_, action)

    def _rated(self, event: Rated) -> None:
        if not event.name:
            for own in reversed(self._open):
                if event.search in ("", own.search.key):
                    own.useless = True
                    return
            return
        id_ = self._corpus.names.named(event.name)
        for own in reversed(self._open):
            if id_ in own.places and event.search in ("", own.search.key):
                own.acts[own.places[str(id_)]] = event.action
                return

    def _wrote(self, event: Wrote) -> None:
        """Files that entries are about, and entries that are named in what was written."""
        for path in event.paths:
            for own in self._recent():
                ids = [
                    id_ for id_ in own.places if any(is_same_file(path, one) for one in self._corpus.files(id_))
                ]
                known = any(is_same_file(path, one) or is_same_file(one, path) for one in own.touched)
                if ids and len(ids) < MANY_FILES and not known and PurePosixPath(path).name not in own.said_before:
                    if PurePosixPath(path).name not in self._asked:
                        for id_ in ids:
                            self._act(own, id_, "used")
                    break
        self._touched.update(event.paths)
        if event.text:
            self._said(event.text[: 4 * 10**5], "used")

    def _recent(self) -> list[_Open]:
        return [own for own in reversed(self._open[self._blind + 1 :]) if self._turn - own.turn <= TURNS]

    def _said(self, text: str, action: str) -> None:
        """Entries that a text cites: by id, by title, or by their own words."""
        sentences = [one for one in SENTENCE.split(text) if one and not one.isspace()]
        seen: set[str] = set()
        for own in self._recent():
            cited, refused = self._cited(own, sentences)
            fresh = cited - seen
            if not _is_listing(len(cited | refused | self._mentioned(own, text)), len(own.places)):
                for id_ in sorted(fresh):
                    self._act(own, id_, action)
            for id_ in refused - cited:
                if own.acts.get(own.places[id_]) == "opened":
                    del own.acts[own.places[id_]]
            seen |= set(own.places)

    def _cited(self, own: _Open, sentences: Sequence[str]) -> tuple[set[str], set[str]]:
        """Which entries of a list the sentences cite, and which they turn down."""
        asked = f" {plain_words(own.said_before)} {plain_words(self._asked)} {plain_words(self._kept)} "
        cited: set[str] = set()
        refused: set[str] = set()
        titles = {id_: self._title(own, id_) for id_ in own.places}
        repeated = Counter(plain_words(title) for title in titles.values())
        runs = self._runs(own, asked)
        for at, sentence in enumerate(sentences):
            plain = f" {plain_words(sentence)} "
            tokens = {token.strip(".:!?#") for token in TOKEN.findall(sentence)}
            found: dict[str, str] = {}
            for id_, title in titles.items():
                name = plain_words(title)
                if has_id(tokens, id_) or has_id(tokens, own.places[id_]):
                    found[id_] = ""
                elif name and repeated[name] == 1 and has_title(sentence, plain, title, asked):
                    found[id_] = name
                elif run := next((run for run in runs[id_] if run in plain), ""):
                    found[id_] = run
            longest = [id_ for id_, name in found.items() if not is_inside(name, found.values())]
            for id_ in longest:
                after = sentences[at + 1] if at + 1 < len(sentences) else ""
                about = sentence.casefold().replace(titles[id_].casefold(), " ")
                about = f"{about} {after}" if GOES_ON.match(after) else about
                (refused if USELESS.search(about) else cited).add(id_)
        return cited, refused

    def _mentioned(self, own: _Open, text: str) -> set[str]:
        """Entries whose titles stand anywhere in a text, were they common words: it may list what was found."""
        plain = f" {plain_words(text)} "
        return {id_ for id_ in own.places if (name := plain_words(self._title(own, id_))) and f" {name} " in plain}

    def _title(self, own: _Open, id_: str) -> str:
        name = own.places[id_]
        shown = next((hit.title for hit in own.search.hits or () if hit.name == name), "")
        return shown or self._corpus.title(id_)

    def _runs(self, own: _Open, asked: str) -> dict[str, set[str]]:
        """Of each entry the runs of words that are its own: in no other entry of the list, and not asked."""
        shown = {hit.name: hit.text for hit in own.search.hits or ()}
        found = {
            id_: {run for text in (shown.get(name, ""), *self._corpus.texts(id_)) for run in runs_of(text)}
            for id_, name in own.places.items()
        }
        counts = Counter(run for runs in found.values() for run in runs)
        return {id_: {run for run in runs if counts[run] == 1 and run not in asked} for id_, runs in found.items()}


def _settled(own: _Open) -> Followed:
    """A search that nothing follows any more: asked again counts where nothing of the list was of use later."""
    useless = own.useless or (own.asked_again and not own.helped)
    return Followed(own.search, own.acts, own.asked_again, useless and not own.acts)


def _is_listing(named: int, shown: int) -> bool:
    return named > 2 and named > LISTED * shown
