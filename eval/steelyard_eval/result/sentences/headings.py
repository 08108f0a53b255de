"""The headings of tables and columns, and the legends below them, by key.

Of a table KEY its title is ``title_KEY``; what explains a table or a column stands under ``legend_KEY``.
"""

from steelyard_eval.result.sentences import gate, learn

CHOSEN, TODAY, BASELINE, TUNED = "chosen", "today", "baseline", "in-sample"
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
    "words": "integer",
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
    "title_agreement": "Agreement of the lists",
    "title_categories": "Categories of queries",
    "title_silence": "Unanswerable queries",
    "title_floors": "Other floors",
    "title_stale": "Outdated entries",
    "title_layers": "Layered searches",
    "title_verification": "Check with ir_measures",
}

COLUMNS = {
    "contender": "",
    "interval": "{metric} [95%]",
    "gain": "against <<{baseline}>> [95%]",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "embedded": "queries embedded",
    "megabytes": "index MB",
    "challenger": "against {baseline}",
    "difference": "{metric} difference [95%]",
    "p_holm": "p (Holm)",
    "counts": "win/tie/loss",
    "detectable": "detectable (80% power)",
    "p_by_category": "p by category",
    "one": "list",
    "other": "other list",
    "rbo": "RBO",
    "shown": "contender",
    "silenced": "no result",
    "words": "words a query",
    "saved": "words saved",
    "lost": "relevant lost",
    "false_answers": "false answers",
    "none": "of",
    "false_share": "share [95%]",
    "floor_of": "floor of",
    "floor_lost": "lost",
    "answered_share": "queries answered",
    "words_left": "words left",
    "outdated": "contender",
    "stale": "outdated",
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
    "legend_detectable": "detectable (80% power): so many queries find a difference of this size 4 times in 5.",
    "legend_categories": "Mean {metric} of {left} (before) and {right} (after). Exploratory: p is corrected over the categories "
    "for the false discovery rate only.",
    "legend_silence": "An unanswerable query has no nDCG. A false answer is a result that is shown for it. Words saved "
    "and relevant lost: the shares that the floor removes from the lists.",
    "legend_floors": "The share of relevant entries that other floors lose, and what they still answer and show.",
    "legend_stale": "Outdated: queries whose list shows a replaced or expired entry, and not its replacement above "
    "it.",
    "legend_layers": "How far each layered search went: queries that matched an abstract, and queries that searched "
    "all details.",
    "legend_agreement": "RBO: how similar two lists are, 0 to 1, with most weight on the first places.",
}

ABOUT = {
    "dialect": "trec_eval: linear gain, discount log2(rank + 1), ideal cut at k; {ties:semicolons}; queries that "
    "nothing answers are left out",
    "ties_answers": "answers in the order given",
    "ties_configurations": "ties by entry id, ascending",
    "ties_lists": "ties of a recorded list in its order, of fusions by entry id, ascending",
    "ties_runs": "ties of runs and tables by entry id, descending",
    "about": "{data} ({split}): <<{queries:queries}>><<{unlabelled:queries}, none labelled>>, limit {limit}<<, intents {intents}>>, vectors {model}",
    "note": "note: {text}",
    "more_notes": "{count} more with -v",
    "more_rows": "{count:more_rows}, none better than these: see the report, or add -v.",
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
