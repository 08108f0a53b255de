"""The sentences of compare, and those that several verbs say: notices on data, steps that any of them may advise."""

from __future__ import annotations

_AND_WRITE = "label the {left:queries} without labels, and new ones: it takes about {more}"
_SO_MANY = "label about {more:more_queries}"
_MOVED = (
    "<<, move {vectors:and} out of the folder>><< (it has none of new queries: from then on name "
    "{embedders:either}, or choose weights anew by LSA)>>"
)
_COUNTS = "with {tried} tried, its p of {p:number} counts as {p_holm:number} (Holm's correction)"
_FLATTERED = "its values here are optimistically biased"

_NAME = "{choice:best_one}<<, best of {best_of},>><<, one of {one_of},>>"
_SURE = "<<, 95% sure of {gain:range}; {worse:odds}>><<?vague:, and so few queries say nothing of others>>"
_CHANGE = f"{{gain:mean}} {{metric}} over <<{{used:yours}}>><<{{baseline}}>>{_SURE}"
_NO_LABELS = "Keep {baseline} for now: without labels nothing can be said of quality,"

SENTENCES: dict[str, str] = {
    # of compare
    "better": f"Better: {_NAME} is {_CHANGE}.",
    "worse": f"Keep <<{{used:yours}}>><<{{baseline}}>>: {_NAME} is {{gain:mean}} {{metric}} against it{_SURE}.",
    "same": f"No difference of {{margin}} or more: {_NAME} is {_CHANGE}.",
    "open": f"Too few queries to tell<<, corrected for the {{tried}} tried>>: {_NAME} is {_CHANGE}.",
    "equal": f"Equal on every query: {_NAME} has the {{metric}} of <<{{used:yours}}>><<{{baseline}}>>.",
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
    # of two kept runs
    "runs_apart": "Run {new}, {label}, against run {old}, {other}: {change} {metric} over {queries} queries, p {p}: "
    "{verdict}.",
    "runs_by_another": "They cannot be compared: run {old} is by another {what} than run {new}.",
    "runs_without_values": "They cannot be compared: no values of queries with the same text and labels are kept of "
    "both.",
    "told": "{text}",  # by a data set, an endpoint, the engine
    # on lists and labels
    "recorded_lists": "the recording has lists of other engines: how they filtered, how deep they searched and what "
    "they embedded is fixed in the lists and unknown here, so no latency and no embedded queries are shown",
    "shared_recipe": "all share the recorded vectors of {recipe}, also systems with another recipe: "
    "{labels:semicolons}",
    "layer_stands_in": "no entry has vectors of the layer {layer} (l0: abstracts, l1: overviews, l2: whole entries), so "
    "layered search (cortex_mem) takes those of the text instead",
    "unclassified": "{labels:semicolons}: nothing classifies queries there, so all take the default; see "
    "--intents given",
    "cached": "latencies leave out the embedding of queries by {model}: their vectors come from the cache",
    "other_scale": "{label}: its floor was measured on another scale: <<the vectors are of {now}, and were of "
    "{then}>><<?both:; >><<?changed:the data set has changed since>>. Find it again with --floor",
    "no_abstract": "{label}: {count} of {queries} queries found no abstract at any step and searched all details",
    "reduced": "{label} runs as {left}, without {missing:and}, which {data} cannot supply (embedder: {model})",
    "not_reranked": "{label} is not re-ranked: {why}",
    "weightless": "{label}: {term} weighs nothing in {without} of {of:queries}: none of its scores is positive "
    "there, and normalize=max makes such a list 0; use normalize=minmax",
    "apart": "{label} adds scores of different ranges ({reached:and}): <<{metric} {before:number} as it is, "
    "{metric} {after:number} with normalize=minmax>><<?unmeasured:write normalize=minmax>>",
    "unknown_ids": "{label}: {odd} of its {ids} ids are of no entry of this corpus and count as misses: "
    "{named:and}<<?more:, ...>>",
    "foreign_queries": "{label}: {odd} of its {queries} queries are not in {data} and count for nothing: "
    "{named:and}<<?more:, ...>>",
    "repeated": "{label}: {places} places repeat an entry of their list and are dropped",
    "no_list": "{label} has no list for {missing} of {queries} queries, which score 0<<; its queries are named "
    "{named:and}>><<?more:, ...>><<, the data set's {first}, ...>>",
    "without_text": "{label} is not asked {count:queries} without text, which score 0",
    "unscoped": "{count} queries carry a filter<<?column: (column filter)>>, which {label} has to apply by itself",
    "strangers": "{count} entries of the lists are not in {data}",
    "session": "{label}: {text}",
    "empty": "of {queries} queries these many end without any result: {counts:and}",
    "shallow": "the limit {limit} is below the cutoff of {metrics:and}",
    # on values and vectors
    "tuned_edited": "{label} was edited since it was tuned, so what the file promises is of other weights",
    "tuned_other_state": "{label} was tuned on another state of this data set; as far as queries and labels are still "
    f"the same, {_FLATTERED}",
    "tuned_here": "{label} was tuned on <<?all:these very queries>><<{both} of these {queries} queries>> and their "
    f"labels, so {_FLATTERED}",
    "tell_little": "{queries} judged queries tell little apart",
    "few_queries": "{queries} judged queries are few: most differences are found 4 times in 5 only from about "
    "{detectable:hundredths} on",
    "scopes": "the {queries} queries share {scopes} scopes, and those of one scope vary together: they are "
    "worth about {worth:whole} independent queries; give them a group to have that counted",
    "nearly": "{count:asks} nearly what another one asks ({pairs:semicolons}<<?more:; ...>>), so the {queries} queries "
    'count as {units}; where they ask different things, write "groups": "given" into dataset.json',
    "judged_once": "no label was given twice; judge {count} of the pairs again, without looking at the first grade, and "
    "write them into {file} as in qrels.txt: it shows how far the labels can be trusted",
    "judged_twice": "{count:pairs} were judged twice: {equal:percent} have the same grade<<, weighted kappa {kappa:number}>>"
    "<<?low:; judges who differ so much may favour one strategy: judge again where they differ>>",
    "unjudged": "{share:percent} of the first ten results of {baseline:yours} have labels<<, fewer of {fewer:some}>>"
    "<<, more of {more:some}>>; a list with fewer may be better than it looks<<; judge what differs: {command:command}>>",
    "lsa": "the vectors are LSA, fitted on these texts; a neural model may rank the strategies in another order"
    "<<, and may find more; --embedder {kind} is installed here>>",
    "interval_holds_zero": f"{_COUNTS}, but the interval holds 0, too",
    "interval_holds_zero_alone": "its p is {p:number}, but the interval holds 0, too",
    "p_proves_nothing": f"{_COUNTS}, and 0.05 or more proves nothing; interval and odds are of it alone",
    "p_proves_nothing_alone": "its p is {p:number}, and 0.05 or more proves nothing",
    # steps that several verbs advise
    "index_once": "index it once",
    "search": "search with it",
    "try_it": "try it",
    "export": "write it for {target}",
    "install": "install the model first",
    "install_large": "install the model first, which brings PyTorch and is large",
    "install_light": "or install the same model without PyTorch",
    "choose_light": "or choose weights for the same model without PyTorch",
    "decide": "decide by these labels<< (if that replaces {replaced}, it prints how to undo it)>>",
    "accept": "accept the files as they are now",
    "judge_pairs": "judge {pairs:pairs}, and they count",
    "label_more": "label more of your queries",
    "label_so_many": _SO_MANY,
    "label_so_many_to_settle": f"{_SO_MANY} to settle it",
    "label_so_many_to_halve": f"{_SO_MANY} to halve that",
    "label_and_write": _AND_WRITE,
    "label_and_write_to_settle": f"{_AND_WRITE} to settle it",
    "label_and_write_to_halve": f"{_AND_WRITE} to halve that",
    "label_them": "label them",
    "write_queries": "every query has labels; to tell more, write <<about {more} >>new ones into {file}"
    f"{_MOVED}, then label them",
}
