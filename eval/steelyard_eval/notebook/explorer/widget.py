"""The explorer in a notebook: a widget that draws what `exploration.Exploration` measures."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anywidget

from steelyard.base.errors import SteelyardError
from steelyard.config import SearchConfig
from steelyard_eval.notebook.explorer.exploration import Exploration
from steelyard_eval.notebook.explorer.explored_data import Record

HERE = Path(__file__).parent


class Explorer(anywidget.AnyWidget):
    """Sliders for the weights of a strategy, and what every move does to the labelled queries.

    Everything is measured in Python, and is there without the picture: `exploration`.
    """

    _esm = (HERE / "explorer.js").read_text(encoding="utf-8")
    _css = (HERE / "explorer.css").read_text(encoding="utf-8")

    def __init__(self, exploration: Exploration) -> None:
        super().__init__()
        self.exploration = exploration
        self.on_msg(self._answer)

    def __repr__(self) -> str:
        return f"Explorer({self.exploration.bench.dataset.name}, against {self.exploration.current.label})"

    @property
    def config(self) -> SearchConfig:
        """The configuration as it stands."""
        return self.exploration.config

    @property
    def value(self) -> float:
        """The mean of the measure as it stands."""
        return float(self.exploration.values.mean())

    def adopt(self, path: str | Path = "search-weights.json") -> Path:
        """Write the configuration as it stands as a weights file, marked as chosen by hand."""
        return self.exploration.adopt(path)

    def _answer(self, _: object, message: Mapping[str, object], __: object) -> None:
        try:
            answer = self._do(str(message.get("do")), message)
        except SteelyardError as error:
            answer = {"error": str(error)}
        self.send({**answer, "to": message.get("number")})

    def _do(self, name: str, message: Mapping[str, Any]) -> Record:
        exploration = self.exploration
        actions: dict[str, Callable[[], Record]] = {
            "open": exploration.opened,
            "weigh": lambda: exploration.weigh(int(message["at"]), float(message["value"])),
            "begin": lambda: exploration.begin(str(message["system"])),
            "write": lambda: exploration.write(str(message["text"])),
            "look": lambda: exploration.look(int(message["at"])),
            "find": lambda: exploration.find(str(message["text"])),
            "curve": lambda: {"curve": exploration.curve(int(message["at"]))},
            "adopt": lambda: {"adopted": str(exploration.adopt(str(message["path"])))},
        }
        return actions[name]()
