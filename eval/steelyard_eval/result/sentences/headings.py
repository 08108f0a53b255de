"""The headings of tables and columns, and the legends below them, by key.

Of a table KEY its title is ``title_KEY``; what explains a table or a column stands under ``legend_KEY``.
"""

from __future__ import annotations

from steelyard_eval.result.sentences import gate, learn

CHOSEN, TODAY, BASELINE, TUNED = "chosen", "today", "baseline", "tuned here"
"""How tables mark rows: of what was chosen, of what is used today or others are tested against, of what was tuned."""
DETAILS = frozenset({"categories", "floors", "curve"}) | gate.DETAILS | learn.DETAILS
"""Tables that a report has, and that are too much for a terminal."""

VERDICTS = {"better": "better", "worse": "worse", "same": "no difference", "open": "too few queries to tell"}
"""The verdicts of a test in words."""

CELLS = {
    "p": "p",
    "p_holm": "p",
    "p_by_category": "p",
    "difference": "gain",
    "gain": "gain",
    "p50_ms": "hundredths",
    "p95_ms": "hundredths",
    "megabytes": "hundredths",
    "words": "whole",
    "saved": "percent",
    "lost": "permille",
    "floor_lost": "permille",
    "answered_share": "percent",
    "words_left": "percent",
    "l0": "percent",
    "l1": "percent",
    "l2": "percent",
    "disagreement": "percent",
    "largest": "power",
    **gate.CELLS,
    **learn.CELLS,
}
"""How the cells of a column look, where numbers have not three decimals."""

TITLES = {
    "title_contenders": "Leaderboard",
    "title_tests": "Tests",
    "title_agreement": "How far the lists agree",
    "title_categories": "Categories of queries",
    "title_silence": "What is shown where nothing fits",
    "title_floors": "What other floors would do",
    "title_stale": "What was replaced or has expired",
    "title_layers": "Layered searches",
    "title_verification": "Check by ir_measures",
}

COLUMNS = {
    "contender": "",
    "interval": "{metric} [95%]",
    "gain": "against <<{baseline}>> [95%]",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "embedded": "queries embedded",
    "megabytes": "index MB",
    "unbeaten": "unbeaten",
    "challenger": "against {baseline}",
    "verdict": "verdict",
    "difference": "{metric} difference [95%]",
    "p": "p",
    "p_holm": "p (Holm)",
    "counts": "win/tie/loss",
    "detectable": "80% power from",
    "why": "why",
    "category": "category",
    "queries": "queries",
    "before": "before",
    "after": "after",
    "p_by_category": "p by category",
    "one": "list",
    "other": "beside",
    "rbo": "RBO",
    "shown": "what is shown",
    "answered": "answered",
    "silenced": "silenced",
    "words": "words a query",
    "saved": "words saved",
    "lost": "relevant lost",
    "false_answers": "false answers",
    "none": "of",
    "false_share": "their share [95%]",
    "floor_of": "floor of",
    "floor": "floor",
    "floor_lost": "lost",
    "answered_share": "questions answered",
    "words_left": "words left",
    "outdated": "outdated",
    "stale": "queries",
    "of": "of",
    "share": "share [95%]",
    "fewer": "better than <<{baseline}>>",
    "more": "worse than <<{baseline}>>",
    "most_often": "most often",
    "layered": "layered search",
    "at_threshold": "at threshold",
    "lower_step": "lower step",
    "all_details": "all details",
    "no_result": "no result",
    "l0": "L0 found",
    "l1": "L1 found",
    "l2": "L2 found",
    "measure": "metric",
    "largest": "largest difference from {tool}",
    "largest_of": "of",
    "at_query": "at query",
}

LEGENDS = {
    "legend_detectable": "80% power from: a difference of this size or more would be found 4 times in 5.",
    "legend_categories": "Mean {metric} of {left} (before) and {right} (after). Exploratory: corrected over the "
    "categories for the false discovery rate only.",
    "legend_silence": "A query that nothing answers has no nDCG; what counts is whether anything is shown for it "
    "(false answers). Words saved, relevant lost: the shares of both that the floor takes off the lists.",
    "legend_floors": "What other floors would lose of the relevant entries, and what they would answer and show.",
    "legend_stale": "Outdated: queries whose list shows an entry that was replaced or has expired, and none above it "
    "that took its place.",
    "legend_layers": "How far each layered search went: queries with an abstract near enough, and those that needed "
    "all details.",
    "legend_agreement": "RBO: how alike two lists are, 0 to 1, with most weight on the first places.",
}

ABOUT = {
    "dialect": "trec_eval: linear gain, discount log2(rank + 1), ideal cut at k; {ties:semicolons}; queries that "
    "nothing answers are left out",
    "ties_answers": "answers in the order given",
    "ties_configurations": "ties by entry id, ascending",
    "ties_lists": "ties of a recorded list in its order, of fusions by entry id, ascending",
    "ties_runs": "ties of runs and tables by entry id, descending",
    "about": "{data} ({split}): {queries:queries}, limit {limit}<<, intents {intents}>>, vectors {model}",
    "note": "note: {text}",
    "more_notes": "{count} more with -v",
    "more_rows": "{count} more tie or lose: all are listed in the report, and with -v.",
}

LATEX = {
    "latex_needs": r"Needs \usepackage{booktabs,amssymb}; the text names it by Table~\ref{{label}}.",
    "latex_system": "System",
    "latex_means": "Means over <<{queries} >>queries of {data}<<, lists of {limit}>>.\nBest in bold, second best underlined.",
    "latex_marks": "{better} ({worse}): better (worse) than {baseline} in {metric},",
    "latex_no_marks": "No system is significantly better or worse than {baseline} in {metric},",
    "latex_test": "two-sided paired randomisation test, $p < 0.05$ after Holm's correction.",
    "latex_chosen": "{chosen}: chosen<<; out of fold its gain is {gain} {metric} {around}>>.",
    "latex_tuned": "{tuned}: tuned on these queries, so its mean is optimistic.",
}
