"""Judging in a notebook: a widget over a `Session`, for the keyboard."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import msgspec

from steelyard.base.errors import ConfigError, SteelyardError
from steelyard_eval.common.tabular import Frame, as_frame
from steelyard_eval.notebook.label.desk import labelling_state
from steelyard_eval.notebook.label.judgment_file import agreement
from steelyard_eval.notebook.label.screen import Screen
from steelyard_eval.notebook.label.session import Session

HERE = Path(__file__).parent


class Judge(anywidget.AnyWidget):
    """A query with what was found for it, graded by the keys 0 to 3 (x: cannot say); each answer is saved at once.

    The judgments are there without the picture: ``session.give(2)``.
    """

    _esm = (HERE / "judge.js").read_text(encoding="utf-8")
    _css = (HERE / "judge.css").read_text(encoding="utf-8")

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session, self.screen = session, Screen(session)
        self.on_msg(self._answer)

    def __repr__(self) -> str:
        pool = self.session.pool
        return f"Judge({pool.dataset.name}: {len(pool)} pairs of {', '.join(pool.labels)})"

    @property
    def qrels(self) -> Path:
        """The grades of the data set and these, as a qrels file; there after the first judgment."""
        return self.session.qrels

    def to_frame(self) -> Frame:
        """A row a judgment, in the order given: query, entry, grade, note, at."""
        rows = [msgspec.structs.asdict(judgment) for judgment in self.session.given.values()]
        return as_frame(rows, ["query", "entry", "grade", "note", "at"])

    def agreement(self) -> dict[str, Any]:
        """Kappa with the first judge, where this one is second."""
        return agreement(self.session.first, self.session.given)

    def _answer(self, _: object, message: Mapping[str, Any], __: object) -> None:
        told = ""
        try:
            told = self._do(message)
        except SteelyardError as problem:
            told = str(problem)
        found = labelling_state(self.session)
        self.send({**found, **self.screen.to_json(found), "message": told, "to": message.get("number")})

    def _do(self, message: Mapping[str, Any]) -> str:
        screen, key = self.screen, str(message.get("do"))
        if key == "open":
            return ""
        if key != "u" and list(screen.pair or ()) != message.get("pair"):
            raise ConfigError("another entry is under the cursor now; look at it, and press the key again")
        if key == "go":
            screen.at = min(max(int(message["at"]), 0), len(screen.pairs) - 1)
            return ""
        return screen.press(key, str(message.get("note", "")))
