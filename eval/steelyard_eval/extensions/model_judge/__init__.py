"""A language model as a judge: asked pair by pair, kept like any judge's answers, and never taken for the truth.

Its labels lie in a file of their own, with the model and the prompt on every line (`llm:MODEL:PROMPT`). They count
for nothing until at least 50 pairs are judged by a person, too, and then as a second measurement that the person's
labels correct (`tune.model_labels`). The texts go to the endpoint that LLM_BASE_URL names, and nowhere else.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from itertools import islice
from pathlib import Path
from types import MappingProxyType

import numpy as np

from steelyard.base.errors import PATH_WIDTH, ConfigError, quote
from steelyard.extensions.network.chat import Chat
from steelyard.memory.entry import Entry
from steelyard_eval.choose.differences import ModelLabels
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.second_labels import weighted_kappa
from steelyard_eval.notebook.label.judgment_file import GRADES, Judgment, Pair, agreement, judgments_of
from steelyard_eval.notebook.label.pool import Pool
from steelyard_eval.notebook.label.session import Session

PROMPT = "relevance-1"  # The version of the prompt: a changed text is another version
MAX_ENTRY_CHARS = 6_000  # Characters of an entry that are asked about
ANSWER = 80  # Tokens of an answer, about
CHARACTERS = 4  # Of a token, about
MIN_PAIRS = 50  # Pairs that a person and the model have to have judged both
DRAWS = 1_000
NONE: Mapping[Pair, Judgment] = MappingProxyType({})
_GRADE = re.compile(r"grade\s*:\s*([0-3])\b(?!\s*(?:,|or))", re.IGNORECASE)
_PARTS = ("title", "text", "context", "why", "impact", "details")


@dataclass(frozen=True)
class Price:
    """What asking would take: pairs, and about how many tokens are sent and answered."""

    pairs: int
    sent: int
    answered: int

    def __str__(self) -> str:
        return f"{self.pairs} pairs, about {self.sent:,} tokens sent and {self.answered:,} answered"


def prompt_of(query: str, entry: Entry) -> str:
    """What a model is asked about a pair."""
    text = resources.files(__package__).joinpath(f"prompts/{PROMPT}.txt").read_text("utf-8")
    parts = [getattr(entry, name) for name in _PARTS if name != "details" or entry.details not in entry.context]
    told = "\n".join(part for part in parts if part)[:MAX_ENTRY_CHARS]
    return text.replace("{query}", _fenced(query)[:MAX_ENTRY_CHARS]).replace("{entry}", _fenced(told))


def _fenced(text: str) -> str:
    """A text that cannot close the marks around it, nor stand for another one."""
    return re.sub(r"</?(query|entry)>", " ", text).replace("{entry}", "{ entry }")


def grade_of(answer: str) -> int | None:
    """The grade of an answer, the last one that it has; None where it has none."""
    grades = _GRADE.findall(answer)
    return int(grades[-1]) if grades else None


class ModelSession(Session):
    """A model at work: whole queries of the pool, the labelled ones first, whose labels it does not see."""

    def __init__(self, pool: Pool, folder: Path, judge: str, now: Callable[[], float] = time.time) -> None:
        labelled = np.array([query.id in pool.dataset.qrels for query in pool.queries], dtype=bool)
        super().__init__(replace(pool, dataset=replace(pool.dataset, qrels={})), folder, judge, now=now)
        self.order = self.order[np.argsort(~labelled[pool.query[self.order]], kind="stable")]


def judge_name(chat: Chat) -> str:
    """The name of a model as a judge, for its file."""
    model = chat.name.rsplit(" ", 1)[-1]
    return f"llm-{re.sub('[^A-Za-z0-9._-]+', '-', model)[:36]}-{PROMPT}"


def provenance(chat: Chat) -> str:
    """What stands on every label: ``llm:MODEL:PROMPT``."""
    return f"llm:{chat.name.rsplit(' ', 1)[-1]}:{PROMPT}"


def cost(session: Session, max_pairs: int) -> Price:
    """What asking about the next pairs would take, by the sizes of their texts; nothing is sent."""
    every = (session.pool.pair(place) for place in session.order.tolist())
    pairs = list(islice((pair for pair in every if pair not in session.given), max_pairs))
    sent = sum(len(prompt_of(query.text, entry)) for query, entry in map(session.shown, pairs))
    return Price(len(pairs), sent // CHARACTERS, len(pairs) * ANSWER)


def ask(session: Session, chat: Chat, max_pairs: int) -> int:
    """Let a model judge the next pairs, at most so many; returns how many. Every answer is saved.

    An answer without a grade is kept as "cannot say". EndpointError where it fails: the next call goes on.
    """
    for count in range(max_pairs):
        if (pair := session.next) is None:
            return count
        query, entry = session.shown(pair)
        session.give(grade_of(chat.complete(prompt_of(query.text, entry))), provenance(chat), pair)
    return max_pairs


def model_agreement(
    person: Mapping[Pair, Judgment], model: Mapping[Pair, Judgment], seed: int = 0
) -> dict[str, object]:
    """Kappa of a person and a model with its 95% interval by bootstrap, and whether the model may count.

    `counts` is true from `MIN_PAIRS` common pairs on, where the interval of the weighted kappa lies above 0.
    """
    record = agreement(person, model)
    common = [pair for pair in person if pair in model and None not in (person[pair].grade, model[pair].grade)]
    first, second = (np.array([given[pair].grade for pair in common], dtype=float) for given in (person, model))
    low = high = None
    if record["weighted"] is not None:
        rng = np.random.default_rng(seed)
        drawn = rng.integers(0, len(common), (DRAWS, len(common)))
        every = (weighted_kappa(first[rows], second[rows]) for rows in drawn)
        values = [value for value in every if value is not None]
        low, high = (float(end) for end in np.quantile(values, [0.025, 0.975])) if values else (None, None)
    counts = len(common) >= MIN_PAIRS and low is not None and low > 0
    return {**record, "low": low, "high": high, "counts": counts, "needed": max(0, MIN_PAIRS - len(common))}


def agreed(agreement: Mapping[str, object]) -> str:
    """The agreement in a sentence: whether the model's labels may count."""
    if agreement["needed"]:
        return f"Its labels count for nothing yet: judge {agreement['needed']} more of these pairs yourself."
    if agreement["weighted"] is None:
        return "Its labels count for nothing: there is no kappa, because one grade was all that was given."
    ends = f"[{agreement['low']:.2f}, {agreement['high']:.2f}]"
    then = "its labels may sharpen yours" if agreement["counts"] else "its labels are no better than chance"
    return f"Weighted kappa {agreement['weighted']:.2f} {ends} on {agreement['pairs']} pairs: {then}."


def judged_by_person(dataset: Dataset, given: Mapping[Pair, Judgment] = NONE) -> dict[Pair, Judgment]:
    """The labels of a data set and what was judged since, as judgments; grades above 3 are 3."""
    known = {
        (query, entry): Judgment(query, entry, min(max(grade, 0), GRADES[-1]), "", "")
        for query, grades in dataset.qrels.items()
        for entry, grade in grades.items()
    }
    return {**known, **given}


def model_labels(path: str | Path, dataset: Dataset) -> ModelLabels:
    """What `judge --model` wrote, for `recommend`. ConfigError for no such file, or one of another set."""
    given = judgments_of(dataset, Path(path))
    if not given:
        raise ConfigError(
            f"{quote(str(path), PATH_WIDTH)} has no judgments; name the file that judge --model wrote"
        )
    qrels: dict[str, dict[str, int]] = {}
    for (query, entry), judgment in given.items():
        if judgment.grade is not None:
            qrels.setdefault(query, {})[entry] = judgment.grade
    record = model_agreement(judged_by_person(dataset), given)
    return ModelLabels(str(path), qrels, record, agreed(record))


def opened(chat: Chat | None) -> Chat:
    """The endpoint; ConfigError where the environment names none."""
    if chat is None:
        raise ConfigError(
            "no language model is named; set LLM_BASE_URL and LLM_MODEL (and LLM_API_KEY where needed)"
        )
    return chat
