"""Judging in a notebook: a widget over a `Session`, for the keyboard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import msgspec

from steelyard.base.errors import SteelyardError
from steelyard_eval.notebook.label.desk import desk
from steelyard_eval.notebook.label.judgment_file import agreement
from steelyard_eval.notebook.label.session import Session

if TYPE_CHECKING:
    import pandas as pd

HERE = Path(__file__).parent


class Judge(anywidget.AnyWidget):
    """One pair after the other, graded by the keys 0 to 3 (x: cannot say), saved before the next one shows.

    Attributes
    ----------
    session: The judgments, which are there without the picture: ``session.give(2)``.
    """

    _esm = (HERE / "judge.js").read_text(encoding="utf-8")
    _css = (HERE / "judge.css").read_text(encoding="utf-8")

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.on_msg(self._answer)

    def __repr__(self) -> str:
        pool = self.session.pool
        return f"Judge({pool.dataset.name}: {len(pool)} pairs of {', '.join(pool.labels)})"

    @property
    def qrels(self) -> Path:
        """The grades of the data set and these, as a qrels file; there after the first judgment."""
        return self.session.qrels

    def to_frame(self) -> pd.DataFrame:
        """A row a judgment, in the order given: query, entry, grade, note, at."""
        import pandas as pd

        rows = [msgspec.structs.asdict(judgment) for judgment in self.session.given.values()]
        return pd.DataFrame(rows, columns=["query", "entry", "grade", "note", "at"])

    def comparisons(self) -> pd.DataFrame:
        """A row a comparison: the difference so far with its interval, the verdict, the labels it still needs."""
        import pandas as pd

        return pd.DataFrame(desk(self.session)["comparisons"])

    def agreement(self) -> dict[str, Any]:
        """Kappa with the first judge, where this one is second."""
        return agreement(self.session.first, self.session.given)

    def _answer(self, _: object, message: Mapping[str, object], __: object) -> None:
        """Answer one message of the picture; what cannot be done is answered with the reason."""
        error = ""
        try:
            self._do(str(message.get("do")), message)
        except SteelyardError as problem:
            error = str(problem)
        self.send({**desk(self.session), "error": error, "to": message.get("number")})

    def _do(self, name: str, message: Mapping[str, Any]) -> None:
        if name == "give":
            query, entry = map(str, message["pair"])
            grade = None if message["grade"] is None else int(message["grade"])
            self.session.give(grade, str(message["note"]), (query, entry))
        elif name in ("skip", "nothing"):
            query, entry = map(str, message["pair"])
            (self.session.skip if name == "skip" else self.session.nothing)((query, entry))
        elif name == "undo":
            self.session.undo()
