"""The sentences of recommend and tune.

Verdicts, what blocks a ship, what public collections showed, what a restriction costs, and what was not tried.
"""

_NAME = "{current:yours}"
_SIZE = "{metric} {before:number} -> about {after:hundredths}<< ({gain:span}, 95% sure)>>"
_TRY = f"Try {{choice}} instead of {_NAME}: {_SIZE}."
_DRAWN = "drawn at random or from a log"
_JUDGE = "label the top {cutoff} of {current} and of {other}"

BLOCKERS = {
    "interrupted": "the search was interrupted",
    "too_few": "'ship' needs at least {fewest} labelled queries",
    "some_chosen": "only {drawn} of the {labelled} labelled queries were drawn at random",
    "chosen_queries": "the labelled queries are not a random sample ({how})",
    "failing": "the labelled queries were chosen because {current} fails on them",
    "nothing_found": "{current} finds no relevant entry in the top {cutoff} of any of the {queries} labelled queries",
    "flat": "the values of {current} vary little over the labelled queries (SD {spread:hundredths}; of the choice "
    "{wider:hundredths}), so its failures may have been selected",
    "pool_misses": "only results of {pool} were labelled",
    "unjudged_gain": "the gain is not proven if only labelled results count (labelled in the top 10: {judged:percent} of "
    "{current}, {others:percent} of the choice)",
    "one_list": "all {count} relevant entries are in the top {cutoff} of {finder}, so perhaps only that list was "
    "labelled",
}
"""Why labels cannot carry a ship, by the key of a `Blocker`."""

REMEDIES = {
    "search_again": "run it again to the end",
    "label_queries": "label more queries",
    "draw_more": f"label more queries {_DRAWN}",
    "draw": f"label queries {_DRAWN}",
    "check_language": "check that your search can read the language and the script of your notes",
    "say_how_drawn": 'state how they were drawn ("sampled" in dataset.json), or label some that are drawn at random',
    "judge_both": _JUDGE,
    "say_the_pool": f'state what was labelled ("pool" in dataset.json), or {_JUDGE}',
}
"""What would help, by the key of a blocker's remedy, with the same facts."""

DECIDED = {
    "ship": f"Ship {{choice}}: {_SIZE}.",
    **{f"try_{key}": f"{_TRY} Not enough to ship: {reason}." for key, reason in BLOCKERS.items()},
    "try_blocked": f"{_TRY} Not enough to ship: these labels cannot prove a gain.",
    "try_more": f"{_TRY} Not enough to ship.<<?strict: The best of many candidates has to pass a stricter test than this "
    "range.>><< About {more:more_labelled} could be enough>><< (likely {least:count} to {most:count})>>"
    "<<?unbounded: (likely {least:count} or more)>><<?more:.>>",
    "keep": f"Keep {_NAME}<<?open: for now>>: <<?open:nothing is proven better, and >>the best alternative gains at most "
    "{bound:number} {metric} (95% sure, one-sided).",
    **{
        f"keep_{key}": f"Keep {_NAME}: {BLOCKERS[key]}; on other queries another search may be better."
        for key in ("failing", "flat")
    },
    "keep_nothing_found": f"Keep {_NAME}: no candidate finds a relevant entry for any query.",
}

NAMES = {"name_system": "{system} with {what}", "name_family": "a {family} of {signals:and}<< with {what}>>"}
"""What a person calls what was chosen."""

_LEAD = (
    "<<?unmeasured:No labels yet>><<{pairs} labelled pairs are too few>>"
    "<<{labelled} labelled queries are too few>>"
)
_BEAT = (
    "on {better} of {collections} public collections (<<{gained:plus}>><<-{lost:number}>> nDCG@10 on average, "
    "{worst:plus} at worst<<; with {vectors}'s vectors>>)"
)
_OR_NEAR = f"<<?near:the closest strategy to {_NAME}>><<?exact:{_NAME}>>"
PUBLIC = {
    "public_no_vectors": f"Keep {_NAME}. {_LEAD}, and there are no vectors to combine with keyword search.",
    "public_as_good": f"Keep {_NAME}. {_LEAD}, and without labels no tested method can rank sums of bm25 and vector with "
    "weights between 0.4 and 0.6.",
    "public_lacks": f"Keep {_NAME}. {_LEAD}, and it ranks by {{facts:and}}, which the public collections lack.",
    "public_not_run": f"Keep {_NAME}. {_LEAD}, and it was not measured on the public collections.",
    "public_keep": f"Keep {_NAME}. {_LEAD}, and half bm25, half vectors is not clearly better: it beat {_OR_NEAR} {_BEAT}.",
    "public_try": f"{_LEAD}. Best guess: half bm25, half vectors; it beat {_OR_NEAR} {_BEAT}.",
}
"""What is said where labels prove nothing."""

_ALLOWED = (
    "Candidates: {kept:count} of {of:count}, those that <<{target} can run>><<?took: and that >><<take at most {ms} "
    "ms>><<?calls: and that >><<embed at most {calls_of_100} of 100 queries>><<?no_calls:embed no query>>."
    "<< Your search does not qualify: {not_allowed}.>>"
)
RESTRICTED = {
    "restricted_free": f"{_ALLOWED} The restriction costs nothing: the choice is the same without it.",
    "restricted_no_cost": f"{_ALLOWED} The restriction costs nothing that can be measured: the choice without it is not "
    "expected to be better.",
    "restricted": f"{_ALLOWED} The restriction costs {{cost:number}} {{metric}}<< ({{low:number}} to {{high:number}}, 95% "
    "sure)>><< (95% sure: between a gain of {gained:number} and a cost of {high:number})>>: the expected gain is "
    "{within:signed} with it and {without:signed} without it. The best without it is {best}.",
    "best_allowed": "The formula above is the best that qualifies.",
    "export_best": "if you need {target}, write the best that it can run",
    "too_slow": "it takes {ms} ms",
    "reads_vectors": "it reads vectors",
    "embeds": "it embeds {calls} of 100 queries",
    "takes_no_lists": "{target} takes no lists",
}

STEPS = {
    "judge_more_pairs": "label {pairs} more pairs; from then on they count",
    "write_and_judge": "write queries and label {pairs:pairs} of query and entry; fewer do not change the answer",
}

NOTICES = {
    "model_labels_odd": "labels of a model: {text}",
    "model_labels_unused": "the model's labels were not used: it has to label all results of {fewest} of your labelled "
    "queries, drawn at random, and of other queries",
    "model_labels": "the model labelled {both} of your queries and {others} others: {text} "
    "<<With them your {queries} labelled queries count as about {worth:integer}>>"
    "<<?unrelated:They do not agree with your labels, and were not used>>.",
    "not_tuned": "{label} was not tuned: {why}",
    "drawn_decide": "only the {drawn} queries that were drawn at random decide; {left:undrawn} not used",
    "tuned_rows": "In-sample rows were tuned on these queries, so their values are too high<<; expect a gain of {expected:signed} from "
    "the choice>>.",
    "place_try": "The choice is not the first row. With few labels, public collections count too.",
    "place_ship": "The choice is not the first row. Rows are sorted by their values on these queries; the choice is the "
    "likeliest to gain on new ones.",
    "dropped": "The choice drops {terms:semicolons}.",
    "decided_interrupted": "The search was interrupted, so some candidates were not tried.",
}

_FOR_TARGET = "`recommend --for TARGET` finds the best search that another target can run."
FILES = {
    "file_chosen": "{file}: the choice",
    "file_today": "{file}: what you run today",
    "file_attempt": "{file}: the suggestion",
    "file_allowed": "{file}: the best that qualifies<< for {target}>>",
    "file_kept": "{file}: {done}<<; it was of the data set {data}>>; undo: {undo:command}",
    "file_exports": f"export: {{file}} fits {{takes:and}}. {_FOR_TARGET}",
    "file_exports_nowhere": "export: `steelyard search` runs {file}, and no other system can. Tried: {tried:and}. Why not "
    f"{{target}}: {{why}}. {_FOR_TARGET} `steelyard export {{file}} --to python` writes a program of its own.",
    "file_unchanged": "{file}: unchanged, from before this run",
}

_UNANSWERABLE = "of the unanswerable queries"
FLOORS = {
    "floor_neither": "No floor keeps both promises. So few false answers <<?none:need no floor>><<need a floor of "
    "{least:significant}>>, and so little loss <<?any:allows no floor>><<allows at most {most:significant}>>. Keep "
    "showing everything, or drop one promise.",
    "floor_none": "No floor keeps that promise on these labels. Keep showing everything.",
    "floor_not_needed": f"No floor is needed: {{measured:percent}} {_UNANSWERABLE} return results today (at most {{share:percent}}, "
    "{sure:percent} sure, {queries} queries).",
    "floor_kept": "The floor {floor} <<loses at most {lost:percent} of the relevant entries ({sure:percent} sure, "
    f"{{lost_queries}} labelled queries)>><<?both:; it >><<answers at most {{false:percent}} {_UNANSWERABLE} "
    "({sure:percent} sure, {false_queries} queries)>>. Off-topic queries usually return almost nothing. On-topic "
    "queries without an answer may still return results (docs/floor.md).",
}

SENTENCES: dict[str, str] = {
    **BLOCKERS, **REMEDIES, **DECIDED, **NAMES, **PUBLIC, **RESTRICTED, **STEPS, **NOTICES, **FILES, **FLOORS
}  # fmt: skip
