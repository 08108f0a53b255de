"""The sentences of recommend and tune.

Verdicts, what blocks a ship, what public collections showed, what a restriction costs, and what was not tried.
"""

from __future__ import annotations

_NAME = "{current:yours}"
_SIZE = "{metric} {before:number} -> about {after:hundredths}<< ({gain:span}, 95% sure)>>"
_TRY = f"Try {{choice}} instead of {_NAME}: {_SIZE}."
_DRAWN = "that are drawn at random or from a log"
_JUDGE = "judge the first {cutoff} of your {current} and of {other}"

BLOCKERS = {
    "interrupted": "the search was broken off",
    "too_few": "fewer than {fewest} labelled queries do not carry a ship",
    "some_chosen": "only {drawn} of the {labelled} labelled queries were drawn at random",
    "chosen_queries": "the labelled queries do not stand for the others ({how})",
    "failing": "the labelled queries were chosen because what you use fails on them",
    "nothing_found": "your {current} finds no relevant entry in the first {cutoff} of any of the {queries} labelled "
    "queries",
    "flat": "on the labelled queries the scores of your {current} spread over {spread:hundredths} and those of the "
    "other over {wider:hundredths}, as if they were chosen for failing",
    "pool_misses": "{pool} alone was judged",
    "unjudged_gain": "it does not hold among judged entries ({judged:percent} of the first places of your {current} "
    "are judged, and {others:percent} of the other's)",
    "one_list": "all {count} relevant entries are among the first {cutoff} of {finder}, as if nothing else was judged",
}
"""Why labels cannot carry a ship, by the key of a `Blocker`."""

REMEDIES = {
    "search_again": "run it again to prove it",
    "label_queries": "label more queries",
    "draw_more": f"label more queries {_DRAWN}",
    "draw": f"label queries {_DRAWN}",
    "check_language": "check that what you use can search the language and the script of your notes",
    "say_how_drawn": 'say how they were drawn ("sampled" in dataset.json), or label some drawn at random',
    "judge_both": _JUDGE,
    "say_the_pool": f'say what was ("pool" in dataset.json), or {_JUDGE}',
}
"""What would help, by the key of a blocker's remedy, with the same facts."""

DECIDED = {
    "ship": f"Ship {{choice}}: {_SIZE}.",
    **{f"try_{key}": f"{_TRY} Not proven yet: {reason}." for key, reason in BLOCKERS.items()},
    "try_blocked": f"{_TRY} Not proven yet: these labels cannot carry it.",
    "try_more": f"{_TRY} Not proven yet<<: about {{more:more_labelled}} could prove it>>.",
    "keep": f"Keep {_NAME}: the best alternative gains at most {{bound:number}} {{metric}} (95% sure).",
    **{
        f"keep_{key}": f"Keep {_NAME}: {BLOCKERS[key]}, so they cannot say what is better on the others."
        for key in ("failing", "flat")
    },
    "keep_nothing_found": f"Keep {_NAME}: nothing that was tried finds a relevant entry for any query.",
}

NAMES = {"name_system": "{system} with new weights", "name_family": "a {family} of {signals:and}"}
"""What a person calls what was chosen."""

_LEAD = (
    "<<?unmeasured:No labels yet>><<{pairs} judged pairs prove nothing yet>>"
    "<<{labelled} labelled queries prove nothing yet>>"
)
_BEAT = (
    "on {better} of {collections} public collections (<<{gained:plus}>><<-{lost:number}>> nDCG@10 on average, "
    "{worst:plus} at worst<<; with {vectors}'s vectors>>)"
)
_OR_NEAR = f"<<?near:the nearest to {_NAME} that was run there>><<?exact:{_NAME}>>"
PUBLIC = {
    "public_no_vectors": f"Keep {_NAME}. {_LEAD}, and there are no vectors to mix words with.",
    "public_as_good": f"Keep {_NAME}. {_LEAD}, and without labels no method tells which sum of bm25 and vector between "
    "0.4 and 0.6 is better.",
    "public_lacks": f"Keep {_NAME}. {_LEAD}, and it ranks by {{facts:and}}, which public collections lack.",
    "public_not_run": f"Keep {_NAME}. {_LEAD}, and it was not run on the public collections.",
    "public_keep": f"Keep {_NAME}. {_LEAD}; half bm25, half vectors beat {_OR_NEAR} {_BEAT}.",
    "public_try": f"{_LEAD}. Best guess: half bm25, half vectors; it beat {_OR_NEAR} {_BEAT}.",
}
"""What is said where labels prove nothing."""

_ALLOWED = (
    "Only what <<{target} expresses>><<?took: and >><<takes at most {ms} ms>><<?calls: and >>"
    "<<embeds at most {calls_of_100} of 100 queries>><<?no_calls:embeds no query>> was a candidate ({kept:count} of "
    "{of:count})<<; what you use today is none of them: {not_allowed}>>."
)
RESTRICTED = {
    "restricted_free": f"{_ALLOWED} The restriction costs nothing: the same would be chosen without it.",
    "restricted_no_cost": f"{_ALLOWED} The restriction shows no cost: the choice without it is expected to do no "
    "better.",
    "restricted": f"{_ALLOWED} The restriction costs {{cost:number}} {{metric}} (95% sure of {{low:signed}} to "
    "{high:signed}): {within:signed} expected with it, {without:signed} without, by {best}.",
    "best_allowed": "The formula above is the best that may be chosen.",
    "export_best": "if it has to be {target}, write the best that it expresses",
    "too_slow": "it takes {ms} ms",
    "reads_vectors": "it reads vectors",
    "embeds": "it embeds {calls} of 100 queries",
    "takes_no_lists": "{target} cannot be given lists",
}

STEPS = {
    "judge_more_pairs": "judge {pairs} more pairs, and they count",
    "write_and_judge": "write queries and judge {pairs:pairs}, and they count",
    "label_so_many_to_decide": "label about {more:more_queries}, and they decide",
    "label_and_write_to_decide": "label the {left:queries} without labels, and new ones: it takes about {more}, and they "
    "decide",
}

NOTICES = {
    "model_labels_odd": "labels of a model: {text}",
    "model_labels_unused": "labels of a model were not used: it has to judge {fewest} of your labelled queries whole, "
    "drawn and not chosen, and others",
    "model_labels": "labels of a model on {both} of your queries and {others} others: {text} By queries, "
    "<<your {queries} labelled queries are worth about {worth:whole} with them>>"
    "<<?unrelated:they are unrelated to your labels of these queries, and were not used>>.",
    "not_tuned": "{label} was not tuned: {why}",
    "drawn_decide": "{drawn} queries that were drawn at random decide; {left:undrawn} no part in it",
    "tuned_rows": "Rows tuned here were chosen on these queries, so their values are too high<<; expect {expected:signed}>>.",
    "place_try": "The choice is not the first row. With few labels, public collections count too.",
    "place_ship": "The choice is not the first row. The rows are in the order of these queries, and the choice is the "
    "likeliest to gain on others.",
    "dropped": "The choice drops {terms:semicolons}.",
    "decided_interrupted": "The search was broken off, so some candidates were not tried.",
}

FILES = {
    "file_chosen": "{file}: what was chosen",
    "file_today": "{file}: what you run today",
    "file_attempt": "{file}: what to try",
    "file_allowed": "{file}: the best that may be chosen<< for {target}>>",
    "file_kept": "{file}: {done}<<, it was of the data set {data}>>; to undo: {undo:command}",
    "file_exports": "{file}: <<can be exported to {takes:and}>><<?any:no other system can run this search>>; --for SYSTEM "
    "finds the best that a system can run",
    "file_unchanged": "{file}: unchanged, from before this run",
}

_UNANSWERABLE = "of the questions without an answer"
FLOORS = {
    "floor_neither": "No floor keeps both promises: so few false answers <<?none:need no floor>>"
    "<<need {least:significant}>>, and <<?any:any floor loses more than that>><<no more may be lost than "
    "{most:significant} loses>>. Show everything, as now, or give one of them up.",
    "floor_none": "No floor keeps that promise by these labels: show everything, as now.",
    "floor_not_needed": f"No floor is needed: {{measured:percent}} {_UNANSWERABLE} are answered as it is, and at most "
    "{share:percent}, {sure:percent} sure, from {queries}.",
    "floor_kept": "The floor {floor} <<loses at most {lost:percent} of the relevant entries, {sure:percent} sure, from "
    f"your {{lost_queries}} labels>><<?both:; >><<answers at most {{false:percent}} {_UNANSWERABLE}, {{sure:percent}} "
    "sure, from {false_queries}>>; questions about something else usually get almost nothing "
    "(docs/floor.md); a question that your memory merely cannot answer is still answered.",
}

SENTENCES: dict[str, str] = {
    **BLOCKERS, **REMEDIES, **DECIDED, **NAMES, **PUBLIC, **RESTRICTED, **STEPS, **NOTICES, **FILES, **FLOORS
}  # fmt: skip
