"""What a judge sees and does: a query with all that was found for it, without a hint of who found what."""

from steelyard_eval.common.console import cut
from steelyard_eval.common.formatting import counted
from steelyard_eval.notebook.label.desk import Record, card, progress
from steelyard_eval.notebook.label.judgment_file import GRADES, NOTHING, Pair
from steelyard_eval.notebook.label.session import Session

MAX_SNIPPET_CHARS = 240
STEPS = {"j": 1, "k": -1, "l": 1, "h": -1}
"""Keys that move: j and k among the entries of a query, l and h among queries."""


class Screen:
    """The query that is judged now, and the entry under the cursor; of a duel the pair that is asked next."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.query, self.at = "", -1
        self._seek()

    @property
    def pairs(self) -> list[Pair]:
        """What was found for the query; nothing where nothing is left to judge."""
        return self.session.screens.get(self.query, [])

    @property
    def pair(self) -> Pair | None:
        """The pair under the cursor."""
        return self.pairs[self.at] if self.pairs else None

    def press(self, key: str, note: str = "") -> str:
        """Do what a key asks for, one of 0 to 3, x, z, u, j, k, l, h; returns what there is to tell.

        After an answer the cursor goes to the next entry that has none. See `Session.give` for errors.
        """
        session, pair = self.session, self.pair
        if key == "u":
            return self._undo_and_return()
        if key == "h" or (key == "l" and pair):
            return self._turn(STEPS[key])
        if pair is None or key not in (*map(str, GRADES), "x", "z", "j", "k"):
            return ""
        if key in STEPS:
            self.at = min(max(self.at + STEPS[key], 0), len(self.pairs) - 1)
            return ""
        relevant = [entry for entry, grade in session.labels.get(pair[0], {}).items() if grade > 0]
        if key == "z":
            session.nothing(pair)
        else:
            session.give(None if key == "x" else int(key), note, pair)
        self._seek()
        if key != "z" or not relevant:
            return ""
        return f"nothing answers {pair[0]}, yet labels call {', '.join(relevant[:3])} relevant; u takes this back"

    def _undo_and_return(self) -> str:
        back = self.session.undo()
        if not back:
            return "nothing is judged, so nothing is taken back"
        query, entry = back[-1].query, back[-1].entry
        self.query, self.at = query, -1
        self._seek((query, entry) if (query, entry) in self.pairs else None)
        return f"taken back: {counted(len(back), 'answer')} on {query}"

    def _turn(self, step: int) -> str:
        """Go to the query before, or leave this one and go to the next."""
        names, query, before = [*self.session.screens], self.query, len(self.session.given)
        there = (names.index(query) if query in names else len(names)) + step
        if step > 0:
            self.session.leave(query)
        if 0 <= there < len(names):
            self.query, self.at = names[there], 0
        elif step > 0:
            self._seek()
        left = counted(len(self.session.given) - before, "entry", "entries")
        return f"left {left} of {query} without a grade; u takes that back" if left[0] != "0" else ""

    def _seek(self, pair: Pair | None = None) -> None:
        """Go to a pair, by default the next without an answer: below the cursor, above it, of another query."""
        pairs = [*self.pairs[self.at + 1 :], *self.pairs[: self.at + 1]]
        open_ = (one for one in pairs if not self.session.judged(one))
        found = pair or next(open_, self.session.next)
        self.query = found[0] if found else ""
        self.at = self.pairs.index(found) if found else 0

    def to_json(self, state: Record) -> Record:
        """How far the work is by the record of `desk`, what was found with its answers, and the entry in full."""
        rows = []
        for pair in self.pairs:
            given, entry = self.session.given, card(self.session, pair)
            answer = given.get(pair) or given.get((self.query, NOTHING))
            text = entry["parts"][0][1] if entry["parts"] else ""
            mark = "" if answer is None else "x" if answer.grade is None else str(answer.grade)
            title, text = " ".join(entry["title"].split()), " ".join(text.split())
            rows.append({"mark": mark, "title": title or "(no title)", "text": cut(text, MAX_SNIPPET_CHARS)})
        shown = None if self.pair is None else card(self.session, self.pair)
        return {"progress": progress(self.session, state, self.query), "rows": rows, "at": self.at, "card": shown}
