"""The sentences of gate: the answer is made of a finding, below which these stand by themselves, too."""

from __future__ import annotations

_SURE = "<<, 95% sure of {gain:range}; {worse:odds}>><<?vague:, and so few queries say nothing of others>>"
_TOLD = (
    f"{_SURE}<<; the one-sided test of the gate fails it (p = {{p:digits2}})>>"
    "<<; a drop of {excluded:plain} is excluded ({bound:percent} sure, one-sided)>>"
    "<<; a drop of {open:plain} is not excluded, for these queries are too few to tell>>"
)
_RISEN = "{before} before<< (p = {p:digits2})>><<, and so few do not rule out a rise by more than {budget:plain}>>"
_FOUND = "<<?finding:{choice:short}: >><<{held:clause}; >><<{finding:clause}>><< (and {more} more)>>."

SENTENCES: dict[str, str] = {
    # the answer
    "fail": f"Fail: {_FOUND}",
    "inconclusive": f"Inconclusive: {_FOUND}",
    "pass": f"Pass: <<no list of {{alone:short}} changed>><<no list of {{many}} contenders changed>>{_FOUND}",
    "mismatch": "Mismatch: <<the {differing:joined} changed since the baseline was written, so search cannot be "
    f"compared with it>>{_FOUND}",
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
    "gate_false_answers": f"{{now}} of {{asked}} questions without an answer are answered, {_RISEN}",
    "gate_stale": "{now} of {asked} lists show what was replaced or has expired above what took its place, "
    f"{_RISEN}",
    "gate_lost": "the floor loses {lost:permille} of the relevant entries, and {promise:percent} was promised",
    "gate_changed": "the {part} changed<<: {moved}>>"
    "<<?clock:: its clock (as_of) is another>><<?beside:: their intents, dates, groups or tags>>",
    "gate_digest": "{part} {before:digest} in the baseline, {now:digest} now",
    # whether quality held, in a few words, where a finding on anything else decides
    "gate_same": "no list changed",
    "gate_open": "too few queries to tell whether quality held ({change:plus} nDCG@10)",
    "gate_fell": "quality fell ({change:plus} nDCG@10)",
    "gate_rose": "quality rose ({change:plus} nDCG@10)",
    "gate_held": "quality held ({change:plus} nDCG@10)",
    # steps
    "gate_see_why": "see why {query} fell most",
    "gate_accept": "quality passes, and this is no evidence of a decline; to accept it<<?other:, update the "
    "baseline with it>>",
    "gate_only_more": "only more <<?questions:questions that nothing answers>><<?both: and >><<?queries:queries>> "
    "can tell more",
    "gate_platform_baseline": "for a baseline of this platform",
    "gate_meant": "if that is meant; else undo it, by hand or from version control",
    # notices
    "gate_platform": "another platform than the baseline's: {here}; the baseline's: {there}",
}

HEADINGS: dict[str, str] = {
    "title_findings": "What was found",
    "title_gated": "Change since the baseline",
    "title_lost": "Queries that lost most",
    "title_gate_slices": "Categories and intents",
    "title_gate_rule": "What the rule saw",
    "title_gate_broken": "Promises that are broken",
    "title_gate_check": "Check",
    "title_gate_file": "Baseline",
    "legend_gated": "This gate blocks about {least:percent} of changes that lower nDCG@10 by {drop:plain}. It "
    "also blocks about {false_alarms:percent} of changes that leave search as good as it was: false alarms."
    "<<?several: Of several contenders, these are its worst values.>><<?asleep: It would miss most such drops: too "
    "few queries have labels.>><< It would miss most such drops of {asleep_of:and}: too few queries have labels.>>",
    "finding": "finding",
    "change": "change [95%]",
    "top10_changed": "moved of {of}",
    "text": "text",
    "now": "now",
    "slice": "slice",
    "value": "value",
    "fall": "change",
    "p_by_slice": "p by slice",
    "fell": "worse",
    "side": "against",
    "reason": "by",
    "worse": "p of a loss",
    "composite": "change of A",
    "p_worse": "p worse",
    "p_better": "p better",
    "p_ndcg": "p nDCG@10",
    "upper": "drop at most",
    "limit": "limit of A",
    "promise": "promise",
    "entries": "entries",
    "check": "check",
    "units": "units",
    "lists_changed": "lists changed",
    "scores_changed": "scores changed",
    "detection_rate": "catches",
    "false_alarms": "false alarms",
    "file": "file",
    "date": "date",
    "because": "reason",
    "tool": "tool",
    "summary_numbers": "the numbers",
    "summary_rankings": "the numbers, and both rankings of the queries that lost most",
    "lost_most": "lost most under",
    "queries_of": "queries that lost most under",
    "nothing": "nothing",
    "github_undecided": "steelyard gate could not decide",
    "undecided": "The gate could not decide, so nothing is known of this change.",
    "figure_gated": "Change of nDCG@10 with 95% intervals",
    "note_gated": "Left of the line is worse than before; dashed: the drop that is accepted. Cross: fails; "
    "hollow: open.",
    "axis_change": "change of nDCG@10",
}
"""Of its tables and pages."""
CELLS = {
    "change": "gain",
    "before": "",
    "p_by_slice": "p",
    "worse": "p",
    "p_worse": "p",
    "p_better": "p",
    "p_ndcg": "p",
    "detection_rate": "percent",
    "false_alarms": "percent",
}
DETAILS = frozenset({"findings", "gate_slices", "gate_rule", "gate_broken", "gate_check", "gate_file"})
