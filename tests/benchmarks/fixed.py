"""What a live search costs beside its retrievers and scorers, system by system, on the data set of the demo."""

from functools import partial
from pathlib import Path

from timing import Race, race

from steelyard.base.errors import SteelyardError
from steelyard.systems import SYSTEMS
from steelyard_eval.datasets import load
from steelyard_eval.recording.workspace import Workspace

STARTER = Path(__file__).resolve().parents[2] / "qrels" / "starter"
WHOLE, PARTS = "steelyard: a search", "its retrievers and scorers alone"


class Replayed:
    """Sources that note every call with its result, to be made again alone."""

    def __init__(self, searcher):
        self.calls: dict[str, list[object]] = {}
        self._sources = searcher._sources

    def noted(self, search, text):
        calls = self.calls.setdefault(text, [])

        def noting(call, *asked):
            calls.append((call, asked))
            return call(*asked)

        built, scorers = self._sources._retrievers.values(), dict(self._sources._scorers)
        ways = [(one, way) for one in built for way in ("retrieve", "follow") if hasattr(one, way)]
        for one, way in ways:
            object.__setattr__(one, way, partial(noting, getattr(one, way)))
        self._sources._scorers.update((name, partial(noting, score)) for name, score in scorers.items())
        search(text)
        self._sources._scorers.update(scorers)
        for one, way in ways:
            object.__delattr__(one, way)

    def again(self, text):
        self._sources._thread.__dict__.pop("vectors", None)  # so that the text is embedded again, as a search does
        for call, asked in self.calls[text]:
            call(*asked)


def races(quick, rounds):
    """One race a system; the difference of both medians is what a search adds."""
    dataset = load(STARTER)
    texts = [query.text for query in dataset.queries][: 3 if quick else 40]
    workspace = Workspace.open(dataset)
    done = []
    for name, system in SYSTEMS.items():
        config = system.config()
        workspace.index_for([system], config.needs | config.effective.signals)
        searcher = workspace.searcher(config)
        replayed = Replayed(searcher)
        try:
            for _ in range(12):  # until the words are in memory
                searcher.search(texts[0])
            for text in texts:
                replayed.noted(searcher.search, text)
        except SteelyardError:
            continue
        taken = race({WHOLE: searcher.search, PARTS: replayed.again}, texts, 1 if quick else rounds)
        done.append(Race("fixed", f"{name} on {len(dataset.entries)} entries", taken, True))
    return done
