"""The sentences of learn."""

from __future__ import annotations

_SEEN = "{searches:count} searches of {distinct} distinct queries"
_UNUSED = "{labelled} labelled queries decided; learn did not use the log:"
_OTHER = "<<{other}>><<?all:the other ranking>><< ({strategy})>>"
_WON = "it won {wins} of {decided} decided searches, {share:percent} [95%: {low:percent} to {high:percent}]"

SENTENCES: dict[str, str] = {
    # the answer
    "learn_no_lists": "Keep {baseline:yours}: the log has {acts:count} acts on single entries, and not the lists that "
    "they were in, so it says nothing about weights.",
    "learn_nothing": f"Keep {{baseline:yours}}: no candidate gains in every view of {_SEEN}.",
    "learn_try": f"Try: acts in {_SEEN} say {{gain:plus}} nDCG@10 over {{baseline:yours}}, and may follow "
    "something else than worth.",
    "learn_preferred": "Try: taking turns with {baseline:yours} it won {share:percent} [{low:percent}, "
    "{high:percent}] of {decided:count} decided searches. Acts may follow something else.",
    "learn_adaptive": "Keep {baseline:yours}: the rule adaptive <<?other:would use other weights>><<?same:would "
    "change nothing>><< after {counts:and}>>, and proves nothing.",
    # what it rests on
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
    "{by_acts:plus} by the acts, and {by_labels:plus} by the labels<<. For given the label and the "
    "place, acts follow {follows}: its highest value is acted upon {times:tenths} times as often as its lowest>>.",
    # steps
    "learn_log_lists": "log what your search shows, or label 20 queries",
    "learn_judge_log": "judge {count} queries of the log, drawn at random<<?settle: to settle it>><<?decide:, and they "
    "decide>>",
    "learn_turns": "or let both take turns, which tells what agents prefer",
    # notices
    "learn_log": "the log has {searches:count} searches of {distinct} distinct queries (worth {worth:whole} equally "
    "frequent ones) and {acts:count} acts<<, {first} to {last}>><<?simulated:, simulated>>",
    "learn_clients": "it has {clients:clients}; the largest made {largest:percent} of the searches",
    "learn_places": "the tenth place counts as looked at {tenth:percent} as often as the first<<?given:, as the log "
    "says>><<, as is usual; {few:acts} cannot tell>><< ({least:percent} to {most:percent})>><<?harvested:, from "
    "entries shown at several places>><<?joint:, from the places of acts and the signals together>>",
    "learn_unseen": "{unseen:percent} of the new first ten places were never shown for their query",
    "learn_nearest": "what came nearest is {strategy}",
    "learn_simulated": "this log is simulated: it shows how learning works, and nothing about people",
    "turns_untold": f"No search tells whether {_OTHER} is preferred: nothing that was shown was acted upon.",
    "turns_open": f"Not decided yet about {_OTHER}: {_WON}.",
    "turns_preferred": f"{_OTHER} is <<?not:not >>preferred: {_WON}; {{same}} of {{clients:clients}} agree.",
}

HEADINGS: dict[str, str] = {
    "title_gains": "Expected gain",
    "title_acts": "What acts are worth",
    "title_places": "How people act on lists",
    "title_follows": "What acts follow",
    "title_set_aside": "Set aside",
    "by": "by",
    "by_labels": "labels",
    "by_both": "the same, sharpened by acts on so many more",
    "by_acts": "acts alone",
    "imputed": "unseen entries at",
    "gain_by": "gain, nDCG@10",
    "error": "query error",
    "refit": "refit error",
    "act": "act",
    "acts": "acts",
    "lift": "lift (all: {lift:tenths})",
    "place": "place",
    "relevant": "relevant entries",
    "irrelevant": "other entries",
    "follows": "acts follow",
    "by_label": "the label",
    "log_odds": "log odds, highest to lowest [95%]",
    "set_aside": "set aside",
    "rule": "why",
    "lines": "lines",
    "figure_gains": "Expected gain in nDCG@10 with 95% intervals, by view",
    "note_gains": "Labels decide, where there are enough; acts alone prove nothing. What nobody was shown has no "
    "feedback: those rows count such entries at a share of what their signals suggest, all of it (1), half or a "
    "quarter.",
    "figure_places": "Acts per show by place, of relevant entries and of others",
    "note_places": "Filled: relevant entries; hollow: others. The closer the two lines, the less an act tells of "
    "relevance.",
    "figure_follows": "How much the label and each signal raise the chance of an act, given the place, with 95% "
    "intervals",
    "note_follows": "Measured on labelled queries. Where a signal lies above 0, acts follow it whatever an entry is "
    "worth.",
    "axis_place": "place",
    "axis_acts": "acts per show",
    "axis_odds": "log odds of an act, highest to lowest",
    "word_current": "current",
    "word_nothing": "nothing",
    "unseen_at": "unseen at {imputed:plain}",
}
"""Of its tables and pages."""
CELLS = {
    "by": "word",
    "gain_by": "signed",
    "imputed": "plain",
    "lift": "tenths",
    "log_odds": "unbounded",
}
DETAILS = frozenset({"places"})
