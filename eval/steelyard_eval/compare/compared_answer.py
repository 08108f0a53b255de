"""What a comparison answers: is anything better than the baseline, by how much, how sure, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from steelyard_eval.common.answer import LONGEST, NAMED, Conclusion, Step, name_of
from steelyard_eval.common.configurations import parted
from steelyard_eval.common.documents.results import ResultsDocument
from steelyard_eval.datasets import Dataset
from steelyard_eval.decide.promise import Gain
from steelyard_eval.decide.steps import NEW, WEIGHTS, indexing, judging, labelling, using
from steelyard_eval.decide.wording import in_words
from steelyard_eval.measures.paired import ALPHA, MARGIN
from steelyard_eval.recording.rankings import spelled

TOO_FEW = "too few queries to tell"
FLATTERED = " It was tuned on these queries, so the gain is optimistic."
NAME = 24
"""Characters of the best one's name; a longer one stands in the formula alone."""


def answer(
    record: ResultsDocument,
    dataset: Dataset | None = None,
    words: Mapping[str, str | None] | None = None,
    options: Mapping[str, object] | None = None,
    *,
    used: bool = True,
) -> Conclusion:
    """Of a comparison's document; with the data set, and how commands name the contenders, also what to do.

    `options` are those by which another command searches in the same way. `used` says whether the baseline is what
    is used today.
    """
    metric, baseline, rows = record["primary"], record.get("baseline") or "", record.get("comparisons") or ()
    if not rows:
        return Conclusion(_alone(record, metric), _beside_today(dataset, (words or {}).get(baseline)))
    top = max(rows, key=lambda row: (row["verdict"] == "better", row["delta"]))  # what is proven goes first
    label, verdict = top["challenger"], top["verdict"]
    name = label if len(label) <= NAME else "the best one"
    place = "best" if top["delta"] == max(row["delta"] for row in rows) else "one"
    among = f", {place} of {len(rows)}," if len(rows) > 1 else ""
    today = name_of(baseline) if used or len(baseline) > NAMED else baseline
    corrected = (top.get("p") or 1.0) < ALPHA <= (top.get("p_holm") or 0.0)  # alone it would be told
    few = f"Too few queries to tell{f', corrected for the {len(rows)} tried' if corrected else ''}"
    told = {"better": "Better", "worse": f"Keep {today}", TOO_FEW: few}
    low, high = top.get("low"), top.get("high")
    known = low is not None and high is not None  # a document of others may leave them out
    gain = Gain(top["delta"], low or 0.0, high or 0.0, top.get("worse") if known else None)
    change = in_words(gain, metric, "against it" if verdict == "worse" else f"over {today}")
    lead = told.get(verdict, f"No difference of {MARGIN} or more")
    if not any(row.get("wins", 1) or row.get("losses") for row in rows):
        return Conclusion(f"Equal on every query: {name}{among} is {change}.")
    sentence = f"{lead}: {name}{among} is {change}."
    row, base = (
        next((row for row in record["configurations"] if row["label"] == side), None) for side in (label, baseline)
    )
    formula = row["strategy"] if row else ""
    wanted = max(0, (top.get("queries_needed") or 0) - (record["dataset"].get("judged") or 0)) if dataset else 0
    model = record.get("model") or ""
    tuned = bool(row and row.get("tuned") and not row.get("edited"))
    if tuned and not (base and base.get("tuned")) and verdict != "worse":
        sentence += FLATTERED if len(sentence + FLATTERED) <= LONGEST else ""
    lists = bool(row and row.get("kind") == "lists")
    system = (row.get("system") if row else None) or "plain"
    written = formula if system == "plain" else f"{system} with {formula}"
    shown = written if verdict != "worse" and formula != name and not lists else ""
    return Conclusion(
        sentence,
        _steps(
            verdict,
            label,
            baseline,
            dataset,
            words or {},
            options or {},
            wanted,
            tuned=tuned,
            lists=lists,
            model=model,
        ),
        shown,
        top.get("why") or "",
    )


def _alone(record: ResultsDocument, metric: str) -> str:
    means = {row["label"]: row["mean"] for row in record["results"] if row["metric"] == metric}
    if not means:
        return f"No configuration has a value of {metric}."
    told = "; ".join(f"{label[:NAME]} has {mean:.3f} {metric}" for label, mean in means.items())
    return f"Nothing to compare with: {told}; name a baseline."


def _beside_today(dataset: Dataset | None, word: str | None) -> tuple[Step, ...]:
    """Where one contender is alone: compare it with what is used."""
    if dataset is None or not word or word == dataset.today:
        return ()
    command = spelled("compare", dataset, word, options={"--baseline": dataset.today})
    return (Step(f"compare it with what you use today, such as {dataset.today}", command or ""),)


def _steps(
    verdict: str,
    label: str,
    baseline: str,
    dataset: Dataset | None,
    words: Mapping[str, str | None],
    options: Mapping[str, object],
    wanted: int,
    *,
    tuned: bool,
    lists: bool,
    model: str,
) -> tuple[Step, ...]:
    if dataset is None:
        return ()
    used, other = words.get(baseline), words.get(label)
    if verdict == TOO_FEW and used and other:
        if dataset.unlabelled:
            return (judging(dataset, "label more queries, by what both find", used, other, option="--random"),)
        if dataset.complete:
            return (labelling(dataset, wanted or None, ""),)
        return (judging(dataset, "label what both find and nobody judged", used, other),)
    if verdict == "better" and lists:
        known = "it has lists alone, so there are no weights to tune"
        command = spelled("recommend", dataset, options={"--current": other, **options}) if other else ""
        return (Step(f"{known}; look for something better still" if command else known, command or ""),)
    files = [Path(parted(word)[1]) for word in (other, used) if word and word.endswith(".json")]
    out = NEW if WEIGHTS in files else None  # what was compared is not to be replaced
    what = "find its best weights, and prove them" if verdict == "better" else "look for something better"
    steps: tuple[Step, ...] = ()
    if verdict == "better" and other and other.endswith(".json"):
        told = "its weights are tuned already; search with them" if tuned else "search with it"
        steps = (*indexing(files[0], dataset, model), Step(told, using(files[0], dataset)))
        what, used = "look for weights that are better still, and prove them", None if tuned else other
    anew = spelled("recommend", dataset, options={"--current": used, **options, "-o": out})
    return (*steps, Step(what, anew or "")) if used else steps
