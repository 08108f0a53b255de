"""The sentences of learn."""

_SEEN = "{searches:count} searches of {distinct} distinct queries"
_UNUSED = "{labelled} labelled queries decided; learn did not use the log:"
_OTHER = "<<{other}>><<?all:the other ranking>><< ({strategy})>>"
_WON = "it won {wins} of {decided} decided searches ({share:percent}; {low:percent} to {high:percent}, 95% sure)"

SENTENCES: dict[str, str] = {
    # the answer
    "learn_no_lists": "Keep {baseline:yours}: the log has {acts:count} actions on single entries but no result lists, so "
    "it says nothing about weights.",
    "learn_nothing": f"Keep {{baseline:yours}}: no candidate gains in every estimate from {_SEEN}.",
    "learn_try": f"Try: feedback from {_SEEN} suggests {{gain:plus}} nDCG@10 over {{baseline:yours}}; it can "
    "reflect something other than relevance.",
    "learn_preferred": "Try: interleaved with {baseline:yours}, it won {share:percent} of {decided:count} decided searches "
    "({low:percent} to {high:percent}, 95% sure). Feedback can reflect something other than relevance.",
    "learn_adaptive": "Keep {baseline:yours}: the adaptive rule <<?other:would use other weights>><<?same:would "
    "change nothing>><< after {counts:and}>>; it proves nothing.",
    # what it rests on
    "learn_few_labels": "{labelled:have_labels}; labels decide from {fewest} on.",
    "learn_listless": f"{_UNUSED} the log has no result lists.",
    "learn_unlogged": f"{_UNUSED} <<?none:none of the {{labelled}} labelled queries was logged>><<?one:only 1 of the "
    "{labelled} labelled queries was logged>><<only {logged} of the {labelled} labelled queries were logged>>, and it "
    "takes {takes}.",
    "learn_unheld": f"{_UNUSED} too few unlabelled queries were logged: <<?one:one>><<?none:none>> beside {{logged}} of "
    "the {labelled} labelled ones; it needs 2.",
    "learn_chance": f"{_UNUSED} on {{logged:labelled_queries}} in it, feedback agrees with the labels no more than by "
    f"chance ({_SEEN}).",
    "learn_worth": f"{{labelled}} labelled queries decided; with the feedback from {_SEEN} they count as about "
    "{worth:integer} (weight of the feedback {share:hundredths}).",
    "learn_contradicted": "Labels contradict the feedback: on {queries} labelled queries {strategy} gains {by_acts:plus} by "
    "feedback and {by_labels:plus} by labels<<. Feedback follows {follows}: at the same label and place, people act on "
    "its highest value {times:tenths} times as often as on its lowest>>.",
    # steps
    "learn_log_lists": "log the lists that your search shows, or label 20 queries",
    "learn_judge_log": "label {count} queries of the log, drawn at random<<?settle:, to settle it>><<?decide:; then your labels "
    "decide>>",
    "learn_turns": "or interleave both, to see which one agents prefer",
    # notices
    "learn_log": "the log has {searches:count} searches of {distinct} distinct queries (they count as {worth:integer} equally "
    "frequent ones) and {acts:count} actions<<, {first} to {last}>><<?simulated:, simulated>>",
    "learn_clients": "the log has {clients:clients}; the largest made {largest:percent} of the searches",
    "learn_places": "people see the tenth place {tenth:percent} as often as the first<<?given:, as the log "
    "states>><<, the usual value, as {few:acts} are too few to measure it>><< ({least:percent} to {most:percent})>><<?harvested:, from "
    "entries shown at several places>><<?joint:, from the places of acts and the signals together>>",
    "learn_unseen": "{unseen:percent} of the new top 10 was never shown for its query",
    "learn_nearest": "the closest candidate is {strategy}",
    "learn_simulated": "this log is simulated: it shows how learning works and says nothing about people",
    "turns_untold": f"No preference measured for {_OTHER}: no result received feedback.",
    "turns_open": f"Undecided about {_OTHER}: {_WON}.",
    "turns_preferred": f"{_OTHER} is <<?not:not >>preferred: {_WON}; {{same}} of {{clients:clients}} agree.",
}
