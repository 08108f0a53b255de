"""The sentences of gate: the answer is made of a finding, below which these stand by themselves, too."""

_SURE = "<< ({gain:range}, 95% sure; {worse:odds})>><<?vague: on these queries, which are too few to say more>>"
_TOLD = (
    f"{_SURE}<<; the gate's one-sided test fails (p = {{p:digits2}})>>"
    "<<; a drop is at most {upper:number} ({bound:percent} sure, one-sided), and {excluded:plain} is allowed>>"
    "<<; too few queries to rule out a drop of {open:plain}>><<: it may reach {reach:number} ({bound:percent} sure, "
    "one-sided)>>"
)
_RISEN = (
    "{before} before<< (p = {p:digits2})>><<; too few queries to rule out a rise by more than {budget:plain}>>"
)
_FOUND = "<<?finding:{choice:short}: >><<{held:clause}; >><<{finding:clause}>><< (and {more} more)>>."

SENTENCES: dict[str, str] = {
    # the answer
    "fail": f"Fail: {_FOUND}",
    "inconclusive": f"Inconclusive: {_FOUND}",
    "pass": f"Pass: <<no list of {{alone:short}} changed>><<no list of {{many}} contenders changed>>{_FOUND}",
    "mismatch": "Mismatch: <<the {differing:joined} changed after the baseline was written, so the two cannot be "
    f"compared>>{_FOUND}",
    # what was found
    "gate_invariant": "{queries:queries} now return entries {promises:promises}; before, none did",
    "gate_identity": "every list and every score is the same<<?elsewhere:, but for ties and rounding on another "
    "platform>>",
    "gate_differs": "the <<?lists:lists>><<?scores:scores>> of {queries:queries} differ with the same sources, "
    "configuration and data<<?elsewhere:, on another platform>><<?here:: something is not deterministic>>",
    "gate_unchanged": "no list changed<<; the scores of {scores:queries} changed>>",
    "gate_baseline": f"{{gain:mean}} nDCG@10 against the baseline{_TOLD}",
    "gate_anchor": f"{{gain:mean}} nDCG@10 against the anchor of {{date}}{_TOLD}",
    "gate_slice": "worse on {slices:and}",
    "gate_false_answers": f"{{now}} of {{of}} unanswerable queries return results, {_RISEN}",
    "gate_stale": f"{{now}} of {{of}} lists show an outdated entry above its replacement, {_RISEN}",
    "gate_lost": "the floor loses {lost:permille} of the relevant entries; the promise was {promise:percent}",
    "gate_changed": "the {part} changed<<: {moved}>>"
    "<<?clock:: its clock (as_of) differs>><<?beside:: their intents, dates, groups or tags>>",
    "gate_digest": "{part} {before:digest} in the baseline, {now:digest} now",
    # whether quality held, in a few words, where a finding on anything else decides
    "gate_same": "no list changed",
    "gate_open": "too few queries to tell whether quality fell ({change:plus} nDCG@10)",
    "gate_fell": "quality fell ({change:plus} nDCG@10)",
    "gate_rose": "quality rose ({change:plus} nDCG@10)",
    "gate_held": "quality held ({change:plus} nDCG@10)",
    # steps
    "gate_see_why": "see why query {query} fell most",
    "gate_accept": "quality passes; there is no evidence of a decline; to accept<<?other: it, update the "
    "baseline>>",
    "gate_only_more": "add <<?questions:unanswerable queries>><<?both: and >><<?queries:labelled queries>> for a clear "
    "result",
    "gate_platform_baseline": "for a baseline of this platform",
    "gate_meant": "to accept the change (else undo it by hand or from version control)",
    # notices
    "gate_platform": "the platform differs from the baseline's: {here} here, {there} there",
}
