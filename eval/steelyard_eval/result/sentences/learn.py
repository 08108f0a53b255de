"""The sentences of learn."""

from __future__ import annotations

_SEEN = "{searches:count} searches of {distinct} distinct queries"
_UNUSED = "{labelled} labelled queries decided; learn did not use the log:"
_OTHER = "<<{other}>><<?all:the other ranking>><< ({strategy})>>"
_WON = "it won {wins} of {decided} decided searches, {share:percent} [95%: {low:percent} to {high:percent}]"

ANSWERS = {
    "learn_no_lists": "Keep {baseline:yours}: the log has {acts:count} acts on single entries, and not the lists that "
    "they were in, so it says nothing about weights.",
    "learn_nothing": f"Keep {{baseline:yours}}: no candidate gains in every view of {_SEEN}.",
    "learn_try": f"Try: acts in {_SEEN} say {{gain:thousandths}} nDCG@10 over {{baseline:yours}}, and may follow "
    "something else than worth.",
    "learn_preferred": "Try: taking turns with {baseline:yours} it won {share:percent} [{low:percent}, "
    "{high:percent}] of {decided:count} decided searches. Acts may follow something else.",
    "learn_adaptive": "Keep {baseline:yours}: the rule adaptive <<?other:would use other weights>><<?same:would "
    "change nothing>><< after {counts:and}>>, and proves nothing.",
}
EVIDENCE = {
    "learn_few_labels": "{labelled:have_labels}; labels decide from {fewest} on.",
    "learn_listless": f"{_UNUSED} it has acts on single entries, and no result lists.",
    "learn_unlogged": f"{_UNUSED} <<?none:none of the {{labelled}} labelled queries was logged>><<?one:only 1 of the "
    "{labelled} labelled queries was logged>><<only {logged} of the {labelled} labelled queries were logged>>, and it "
    "takes {takes}.",
    "learn_unheld": f"{_UNUSED} {{logged}} of the {{labelled}} labelled queries were logged, but <<?one:only one other "
    "logged query has>><<?none:no other logged query has>> a question of its own; it takes 2.",
    "learn_chance": f"{_UNUSED} on the {{logged:labelled_queries}} in it the acts in {_SEEN} agree with the labels no "
    "more than chance explains.",
    "learn_worth": f"{{labelled}} labelled queries decided; the acts in {_SEEN} make them worth about {{worth:whole}} "
    "(share {share:hundredths}).",
    "learn_contradicted": "Labels contradict the acts: on {queries} labelled queries {strategy} gains "
    "{by_acts:thousandths} by the acts, and {by_labels:thousandths} by the labels<<. For given the label and the "
    "place, acts follow {follows}: its highest value is acted upon {times:tenths} times as often as its lowest>>.",
}
STEPS = {
    "learn_log_lists": "log what your search shows, or label 20 queries",
    "learn_judge_log": "judge {count} queries of the log, drawn at random<<?settle: to settle it>><<?decide:, and they "
    "decide>>",
    "learn_turns": "or let both take turns, which tells what agents prefer",
}
NOTICES = {
    "learn_log": "the log has {searches:count} searches of {distinct} distinct queries (worth {worth:whole} equally "
    "frequent ones) and {acts:count} acts<<, {first} to {last}>><<?simulated:, simulated>>",
    "learn_clients": "it has {clients:clients}; the largest made {largest:percent} of the searches",
    "learn_places": "the tenth place counts as looked at {tenth:percent} as often as the first<<?given:, as the log "
    "says>><<, as is usual; {few:acts} cannot tell>><< ({least:percent} to {most:percent})>><<?harvested:, from "
    "entries shown at several places>><<?joint:, from the places of acts and the signals together>>",
    "learn_unseen": "{unseen:percent} of the new first ten places were never shown for their query<<; the gain is gone "
    "where such entries count {flip:hundredths} of what their signals suggest>>",
    "learn_nearest": "what came nearest is {strategy}",
    "learn_simulated": "this log is simulated: it shows how learning works, and nothing about people",
    "turns_untold": f"No search tells whether {_OTHER} is preferred: nothing that was shown was acted upon.",
    "turns_open": f"Not decided yet about {_OTHER}: {_WON}.",
    "turns_preferred": f"{_OTHER} is <<?not:not >>preferred: {_WON}; {{same}} of {{clients:clients}} agree.",
}

SENTENCES: dict[str, str] = {**ANSWERS, **EVIDENCE, **STEPS, **NOTICES}
