"""What followed a search: which of its entries were opened, cited, used, and whether the question was asked again.

Strong evidence is a citation or a tool that used the entry, medium that the question was asked again, weak that an
entry was shown (the tiers of system-spec-kit's ledger). A wrong act teaches a wrong weight, a missed one only asks
for more use: what is doubtful counts as nothing. So no act is inferred from

- the title of an entry in what repeats the question, or in a list of what was found;
- a sentence that says an entry is of no use;
- a title of one or two words, unless it stands in quotes or emphasis;
- an edited file that the person named, of whose name one was touched before, or that belongs to many entries.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice

from steelyard_eval.extensions.usage import session
from steelyard_eval.extensions.usage.session import AGENT, MEMORY, Acted, Corpus, Event, Searched, Spoken, Wrote

OPEN = 20  # Searches of a session that later events may belong to
TURNS = 1  # Questions of a person after which what is said or edited still belongs to a search
MANY_FILES = 3  # Entries of one list that an edited file may belong to; more say nothing of any
LISTED = 0.5  # A message that names more than this share of a list, and more than two, tells what was found
LOOKED_AT = 100  # Entries of a list of which somebody may speak; nobody reads more
MOST_LOOKS = 100_000  # Pairs of a sentence and a title that it may have, of what is said at once and one list
LONGEST_SAID = 200_000
"""Characters of what is said, asked, kept or written at once that are looked at; a model says less at once."""
MOST_RUNS = 50_000  # Runs of words of one list by which its entries are recognised, shared by them
MOST_PATHS = 100  # Files of one edit that are looked at
SAME = 2  # Words of one question in the next, from which on it is the same one, asked again
STRENGTH = {"cited": "strong", "used": "strong", "opened": "strong", "modified": "strong", "none_useful": "medium"}
"""The tier of what is inferred; acts that somebody reported are strong."""
_RANK = ("opened", "cited", "used", "modified")
"""What counts where several acts fall on one entry: the last of these, and a report before all."""


@dataclass
class SearchOutcome:
    """A search with what was inferred of it: at most one act an entry, by the names of its list.

    `repeated` is whether the same was asked once more; `useless` whether that says that the list was of no use.
    """

    search: Searched
    acts: dict[str, str] = field(default_factory=dict)
    repeated: bool = False
    useless: bool = False


class _Open(SearchOutcome):
    """A search that later events may belong to, with what its entries are recognised by."""

    def __init__(self, search: Searched, corpus: Corpus, turn: int, asked: str, touches: int) -> None:
        super().__init__(search)
        self._corpus, self.turn, self.touches = corpus, turn, touches
        self.said_before = f"{asked}\n{search.query[:LONGEST_SAID]}"
        self.asked = session.plain_words(self.said_before)
        self.helped = False
        """Whether an entry was asked for by its title, or used when a later list showed it again."""
        self.places: dict[str, str] = {}
        """Id of the corpus -> the name of the hit."""
        for name in search.hits or ():
            if (id_ := corpus.names.named(name)) is not None:
                self.places.setdefault(id_, name)
        self.titles = {id_: corpus[id_].title for id_ in islice(self.places, LOOKED_AT)}
        self.plain = {id_: session.plain_words(title) for id_, title in self.titles.items()}
        self.times = Counter(self.plain.values())
        """How many entries have a title of these plain words."""

    @cached_property
    def marks(self) -> dict[str, str]:
        """What may stand for an id in prose -> the id; empty where several begin so."""
        marks: dict[str, str] = {}
        for id_ in self.titles:
            for mark in {*session.marks_of(id_), *session.marks_of(self.places[id_])}:
                marks[mark] = id_ if marks.get(mark, id_) == id_ else ""
        return marks

    @cached_property
    def runs(self) -> dict[str, str]:
        """Run of words -> the id whose own it is; empty for one of several entries."""
        most = MOST_RUNS // max(len(self.titles), 1)
        runs: dict[str, str] = {}
        for id_ in self.titles:
            for run in islice((run for text in self._corpus.texts(id_) for run in _runs_of(text, most)), most):
                runs[run] = id_ if runs.get(run, id_) == id_ else ""
        return runs

    @cached_property
    def files(self) -> dict[str, list[tuple[str, str]]]:
        """Name of a file -> the paths that it has, and the entries that they belong to."""
        files: dict[str, list[tuple[str, str]]] = {}
        for id_ in self.titles:
            for path in self._corpus.files(id_):
                files.setdefault(session.file_name(path), []).append((path, id_))
        return files

    def cited(self, parts: Sequence[session.Sentence], whole: str, asked: str) -> tuple[set[str], set[str], int]:
        """Which entries the sentences of a whole cite, which they turn down, and how many they name.

        What stands in `asked` was known before.
        """
        cited: set[str] = set()
        refused: set[str] = set()
        # Even a title of common words is named: a text that has most titles only lists what was found.
        named = [id_ for id_, name in self.plain.items() if name and f" {name} " in whole]
        own = [id_ for id_ in named if self.times[self.plain[id_]] == 1 and f" {self.plain[id_]} " not in asked]
        most = MOST_LOOKS // max(len(own), 1)
        for i, sentence in enumerate(parts):
            mentions = {id_: run for run in sentence.runs if (id_ := self.runs.get(run)) and run not in asked}
            for id_ in own if i < most else ():
                name = f" {self.plain[id_]} "
                if name in sentence.plain and session.is_named(self.titles[id_], name.strip(), sentence):
                    mentions[id_] = name
            mentions |= {id_: "" for token in sentence.tokens if (id_ := self.marks.get(token))}
            after = parts[i + 1].text if i + 1 < len(parts) else ""
            for id_, name in mentions.items():
                if name and any(name != other and name in other for other in mentions.values()):
                    continue  # part of a longer title that stands there
                about = sentence.text.casefold().replace(self.titles[id_].casefold(), " ")
                about = f"{about} {after}" if session.GOES_ON.match(after) else about
                (refused if session.USELESS.search(about) else cited).add(id_)
        return cited, refused, len({*cited, *refused, *named})

    def settled(self) -> SearchOutcome:
        """What nothing follows any more: asked again counts where nothing of the list was of use later."""
        useless = self.useless or (self.repeated and not self.helped)
        return SearchOutcome(self.search, self.acts, self.repeated, useless and not self.acts)


@lru_cache(1024)  # texts: many searches find the same entries
def _runs_of(text: str, most: int) -> tuple[str, ...]:
    return tuple(islice(session.runs_of(text), most))


def search_outcomes(events: Iterable[Event], corpus: Corpus) -> Iterator[SearchOutcome]:
    """The searches of a session with what followed each, in the order in which they were made."""
    own = _Session(corpus)
    for event in events:
        yield from own.take(event)
    yield from (call.settled() for call in own.open)


class _Session:
    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.open: list[_Open] = []
        self._turn = 0
        self._asked = self._told = self._kept = ""
        self._touched: dict[str, int] = {}
        """Name of a file -> how many had been touched before."""
        self._blind = -1

    def take(self, event: Event) -> Iterator[SearchOutcome]:
        """One event; the searches that nothing can follow any more."""
        match event:
            case Searched():
                yield from self._search(event)
            case Acted():
                self._acted(event)
            case Wrote():
                self._wrote(event)
            case Spoken():
                text = event.text[:LONGEST_SAID]
                if event.who == AGENT:
                    self._said(session.FENCED.sub("\n", text), "cited")
                elif event.who == MEMORY:
                    self._kept = f"{self._kept} {session.plain_words(text)}"[-LONGEST_SAID:]
                elif words := session.persons_words(text):
                    self._turn, self._asked, self._told = self._turn + 1, words, session.plain_words(words)

    def _search(self, search: Searched) -> Iterator[SearchOutcome]:
        before = self.open[-1] if self.open and self.open[-1].turn == self._turn else None
        if before is not None and not before.acts and _is_again(before.search, search):
            before.repeated = True
            wanted = session.plain_words(search.query)
            before.helped = any(session.plain_words(self._corpus[id_].title) == wanted for id_ in before.places)
        self.open.append(_Open(search, self._corpus, self._turn, self._asked, len(self._touched)))
        if search.hits is None:
            self._blind = len(self.open) - 1  # what is opened now may be of a list that nobody recorded
        if len(self.open) > OPEN:
            self._blind -= 1
            yield self.open.pop(0).settled()

    def _recent(self) -> list[_Open]:
        """The searches since one whose list nobody recorded, the last first."""
        return self.open[: self._blind : -1] if self._blind >= 0 else self.open[::-1]

    def _current(self) -> list[_Open]:
        return [call for call in self._recent() if self._turn - call.turn <= TURNS]

    def _act(self, call: _Open, id_: str, action: str) -> None:
        name = call.places[id_]
        before = call.acts.get(name)
        if before is None or (before in _RANK and _RANK.index(before) < _RANK.index(action)):
            call.acts[name] = action
        for other in self.open:
            other.helped |= id_ in other.places

    def _acted(self, event: Acted) -> None:
        """Acts on entries of the last lists that showed them; all of a list at once tell none from the others."""
        if event.reported:
            named = [self._corpus.names.named(name) for name in event.names]
            for call in reversed(self.open):
                if event.search in ("", call.search.key) and all(id_ in call.places for id_ in named):
                    call.acts |= {call.places[id_]: event.action for id_ in named if id_ is not None}
                    call.useless |= not named  # a report on the whole list
                    return
            return
        calls: dict[int, tuple[_Open, set[str]]] = {}
        for id_ in filter(None, map(self._corpus.names.named, event.names)):
            for shown in [call for call in self._recent() if id_ in call.places][:1]:
                calls.setdefault(id(shown), (shown, set()))[1].add(id_)
        for call, ids in calls.values():
            if not _is_listing(len(ids), call):
                for id_ in sorted(ids):
                    self._act(call, id_, event.action)
        if event.action == "opened" and len(event.names) == 1:
            self._touch(event.names)

    def _wrote(self, event: Wrote) -> None:
        """Files that entries are about, and entries that are named in what was written."""
        for path in event.paths[:MOST_PATHS]:
            name = session.file_name(path)
            for call in self._current():
                about = {id_ for other, id_ in call.files.get(name, ()) if session.is_same_file(path, other)}
                known = self._touched.get(name, call.touches) < call.touches
                if about and len(about) < MANY_FILES and not known and name not in call.said_before:
                    if name not in self._asked:
                        for id_ in sorted(about):
                            self._act(call, id_, "used")
                    break
        self._touch(event.paths)
        if event.text:
            self._said(event.text[:LONGEST_SAID], "used")

    def _touch(self, paths: Sequence[str]) -> None:
        for path in paths[:MOST_PATHS]:
            self._touched.setdefault(session.file_name(path), len(self._touched))

    def _said(self, text: str, action: str) -> None:
        """Entries that a text cites: by id, by title, or by their own words."""
        parts, whole, seen = session.sentences(text), f" {session.plain_words(text)} ", set[str]()
        for call in self._current():
            cited, refused, named = call.cited(parts, whole, f" {call.asked} {self._told} {self._kept} ")
            if not _is_listing(named, call):
                for id_ in sorted(cited - seen):
                    self._act(call, id_, action)
            for id_ in refused - cited:
                if call.acts.get(call.places[id_]) == "opened":
                    del call.acts[call.places[id_]]
            seen |= call.places.keys()


def _is_again(before: Searched, search: Searched) -> bool:
    """Whether a search asks the same once more, in other words: it shares words with the question before."""
    old, new = session.content_words(before.query), session.content_words(search.query)
    shared = len(old & new)
    other = before.hits is not None and session.plain_words(before.query) != session.plain_words(search.query)
    return other and (shared >= SAME or (shared > 0 and shared * 2 >= min(len(old), len(new))))


def _is_listing(named: int, call: _Open) -> bool:
    return named > 2 and named > LISTED * len(call.places)
