"""The sentences of compare."""

from __future__ import annotations

_NAME = "{choice:best_one}<<, best of {best_of},>><<, one of {one_of},>>"
_SURE = "<<, 95% sure of {gain:range}; {worse:odds}>><<?vague:, and so few queries say nothing of others>>"
_CHANGE = f"{{gain:mean}} {{metric}} over <<{{used:yours}}>><<{{baseline}}>>{_SURE}"
_NO_LABELS = "Keep {baseline} for now: without labels nothing can be said of quality,"

SENTENCES: dict[str, str] = {
    "better": f"Better: {_NAME} is {_CHANGE}.",
    "worse": f"Keep <<{{used:yours}}>><<{{baseline}}>>: {_NAME} is {{gain:mean}} {{metric}} against it{_SURE}.",
    "same": f"No difference of {{margin}} or more: {_NAME} is {_CHANGE}.",
    "open": f"Too few queries to tell<<, corrected for the {{tried}} tried>>: {_NAME} is {_CHANGE}.",
    "equal": f"Equal on every query: {_NAME} is {_CHANGE}.",
    "alone": "Nothing to compare with: {choice:brief} has {value:number} {metric}; name a baseline.",
    "disagree": f"{_NO_LABELS} only that configurations disagree on {{disagreement:percent}} of the first ten (by "
    "rank-biased overlap).",
    "disagree_alone": f"{_NO_LABELS} and one contender disagrees with nothing.",
    "flattered": "It was tuned on these queries, so the gain is optimistic.",
    "compare_today": "compare it with what you use today, such as {today}",
    "label_found": "label more queries, by what both find",
    "label_both": "label what both find and nobody judged",
    "only_lists": "it has lists alone, so there are no weights to tune<<?more:; look for something better still>>",
    "search_tuned": "its weights are tuned already; search with them",
    "find_best": "find its best weights, and prove them",
    "find_better": "look for something better",
    "find_better_still": "look for weights that are better still, and prove them",
}
