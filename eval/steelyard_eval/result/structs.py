"""What a job answers, as types: the JSON document, its schema and every view are made of these and nothing else.

A result holds numbers, names and keys. It holds no sentence: `sentences.say` makes one of a key and its facts.
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace as replace

VERSION: Literal[2] = 2
Probability = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(max_length=100_000)]
Kind = Literal["compare", "recommend", "gate", "learn"]


class Struct(msgspec.Struct, frozen=True, omit_defaults=True):
    """The base of all parts: equal by value, and short in a file, where what has its default is left out."""


class Estimate(Struct, frozen=True, omit_defaults=False):
    """A mean, or a mean difference, with the ends of its 95% interval; None each where nothing is known of them.

    The ends are as they are shown: within the range of the metric, or of a difference of two.
    """

    mean: float
    low: float | None = None
    high: float | None = None


Fact = str | int | float | bool | list[str] | Estimate | None
"""What a sentence is made of; of None the part of the sentence that names it is left out."""


class Message(Struct, frozen=True):
    """Something to be said: the key of a sentence, and its facts."""

    key: Name
    facts: dict[str, Fact] = {}


class Step(Message, frozen=True):
    """Something to do; `command` has the words of a command, as a shell would take them, or nothing."""

    command: list[Name] = []


class Answer(Message, frozen=True):
    """The answer of a job.

    `because` says what holds a stronger answer back, and what else has to be known of it; `steps` what to do now;
    `formula` is the strategy that it is about, empty where there is none.
    """

    because: list[Message] = []
    steps: list[Step] = []
    formula: str = ""


Verdict = Literal["better", "worse", "same", "open"]
"""Of a paired difference: better, worse, no difference of the margin or more, too few queries to tell."""


class Paired(Struct, frozen=True):
    """A contender against the baseline on the same queries; see `steelyard_eval.measures.paired`.

    `p_holm` is corrected over all contenders; `worse` is the probability that it is worse on other queries;
    `detectable` the smallest difference that is found with 80% power, `needed` the queries that would show this
    one; `why`: a difference is left open whose interval, or p, seems to tell.
    """

    gain: Estimate
    verdict: Verdict
    p: Probability
    p_holm: Probability
    wins: Count
    ties: Count
    losses: Count
    worse: Probability | None = None
    detectable: float | None = None
    needed: Count | None = None
    why: Message | None = None


class Latency(Struct, frozen=True):
    """Milliseconds of a live search: half took less, 95 and 99 of 100; `layers` of a layered search each."""

    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    layers: dict[str, "Latency"] = {}
    degraded: Count = 0


class Cost(Struct, frozen=True):
    """What searching costs: queries that were embedded, bytes of its indexes, and how long it takes.

    Latency differs from run to run, so a report.json has none.
    """

    embedded: Count | None = None
    keyword_bytes: Count | None = None
    vector_bytes: Count | None = None
    latency: Latency | None = None


class Row(Struct, frozen=True):
    """A contender: what it is, what it scores by metric, and how it stands against the baseline.

    `strategy` of lists is where they are from. `tuned`: it was tuned on these queries, or some of them; `edited`:
    its weights were edited since. `empty` counts queries without any result. `gain` is the difference from the
    baseline of a row that was not tested (`against`), because it was chosen on these queries.
    """

    label: Name
    kind: str
    strategy: Name
    means: dict[str, Estimate] = {}
    system: Name | None = None
    profile: Name | None = None
    family: Name | None = None
    settings: Name | None = None
    depths: dict[str, int | None] = {}
    against: Paired | None = None
    gain: Estimate | None = None
    cost: Cost = Cost()
    empty: Count = 0
    tuned: bool = False
    edited: bool = False


Cell = str | int | float | Estimate | None


class Table(Struct, frozen=True):
    """A further table; its heading, its legend and the heads of its columns are found by key, with `facts`."""

    key: Name
    columns: list[Name]
    rows: list[list[Cell]]
    facts: dict[str, Fact] = {}


class Listed(Struct, frozen=True):
    """The first places of a list; of our own contenders with scores, and with what each signal adds to them."""

    entries: list[Name]
    scores: list[float] = []
    parts: dict[str, list[float]] = {}


class QueryRow(Struct, frozen=True):
    """A query, with the first metric and the list of every contender by label, and its judged entries by grade."""

    id: Name
    text: Name = ""
    category: Name | None = None
    group: Name | None = None
    values: dict[str, float | None] = {}
    lists: dict[str, Listed] = {}
    grades: dict[str, int] = {}


class Blocker(Message, frozen=True):
    """Why labels cannot carry a ship; `remedy` is the key of what would help."""

    remedy: Name = "label_more"


class Finding(Message, frozen=True, kw_only=True):
    """What a gate found of a contender; without one it is of the data."""

    verdict: Literal["pass", "inconclusive", "fail", "mismatch"]
    contender: Name = ""


class Decision(Struct, frozen=True):
    """What to do with what is used today.

    `gain` is expected on queries that were not seen, `worse` the probability that it is a loss; nothing that was
    tried gains more than `bound`; `more` queries would settle it; `public`: it
    rests on public collections, because labels prove nothing. `chosen` is the label of the row that was chosen.
    """

    verdict: Literal["ship", "try", "keep"]
    chosen: Name | None = None
    gain: Estimate | None = None
    worse: Probability | None = None
    bound: float | None = None
    more: Count | None = None
    blocker: Blocker | None = None
    public: bool = False


class DataFacts(Struct, frozen=True):
    """The data set, with its hash, sizes and clock; `path` is None for one that is in memory alone."""

    name: Name
    path: Name | None = None
    description: Name | None = None
    licence: Name | None = None
    sha256: Name | None = None
    as_of: Name | None = None
    entries: Count | None = None
    queries: Count | None = None
    judged: Count | None = None
    set_apart: Count | None = None

    @property
    def called(self) -> str:
        """How text calls it: its folder, as that was typed, else its name."""
        return Path(self.path or "").name or self.name


class Provenance(Struct, frozen=True):
    """Where the numbers are from, and the words of the command that makes them again; none from Python alone.

    `metrics` are all that were measured, the one that was tested first; `named` those that were asked for by name;
    `ties` says by key how equal scores were ordered.
    """

    tool: Name
    data: DataFacts
    command: list[Name] = []
    metrics: list[Name] = []
    named: list[Name] = []
    baseline: Name = ""
    split: Name = "all"
    limit: Count | None = None
    model: Name = ""
    recipe: Name = ""
    intents: Name = ""
    ties: list[Name] = []
    seed: int = 0
    candidates: Count | None = None


class Result(Struct, frozen=True, omit_defaults=False):
    """The answer of one job.

    `entries` has the opening words of entries that lists show; `findings` are those of a gate, worst first.
    """

    kind: Kind
    answer: Answer
    provenance: Provenance
    rows: list[Row] = []
    decision: Decision | None = None
    findings: list[Finding] = []
    notices: list[Message] = []
    tables: list[Table] = []
    queries: list[QueryRow] = []
    entries: dict[str, str] = {}
    version: Literal[2] = 2

    def row(self, label: str) -> Row:
        """The contender of this label; KeyError where there is none."""
        found = next((row for row in self.rows if row.label == label), None)
        if found is None:
            raise KeyError(label)
        return found

    @property
    def choice(self) -> Row | None:
        """What is proposed: what was chosen, or what a comparison speaks of; None where there is no row of it."""
        label = self.decision.chosen if self.decision else self.answer.facts.get("choice")
        return next((row for row in self.rows if row.label == label), None)

    @property
    def verdict(self) -> str:
        """What was decided, or what a gate says; empty of a comparison."""
        return self.decision.verdict if self.decision else self.answer.key if self.kind == "gate" else ""

    def table(self, key: str) -> list[dict[str, Cell]]:
        """The rows of a further table, by the keys of its columns; none where there is no such table."""
        found = next((table for table in self.tables if table.key == key), None)
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows] if found else []

    @property
    def metric(self) -> str:
        """The metric that was tested, or decided on; empty where nothing was measured."""
        return self.provenance.metrics[0] if self.provenance.metrics else ""
