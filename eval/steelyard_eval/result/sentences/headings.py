"""The headings of tables, columns and pages, the legends below them, and the glossary of a report, by key.

Of a table KEY its title is ``title_KEY``; what explains a table or a column stands under ``legend_KEY``.
"""

from __future__ import annotations

from steelyard_eval.result.sentences import gate, learn

CHOSEN, TODAY, BASELINE, TUNED = "chosen", "today", "baseline", "tuned here"
"""How tables mark rows: of what was chosen, of what is used today or others are tested against, of what was tuned."""
DETAILS = frozenset(
    [
        "categories",
        "floors",
        "curve",
        "findings",
        "gate_slices",
        "gate_rule",
        "gate_broken",
        "gate_check",
        "gate_file",
        "places",
    ]
)
"""Tables that a report has, and that are too much for a terminal."""

VERDICTS = {"better": "better", "worse": "worse", "same": "no difference", "open": "too few queries to tell"}
"""The verdicts of a test in words."""

_LOOKS = {
    "p": "p p_holm p_by_category p_by_slice worse p_worse p_better p_ndcg",
    "gain": "difference gain ahead change log_odds",
    "hundredths": "p50_ms p95_ms megabytes",
    "percent": "saved answered_share words_left l0 l1 l2 disagreement detection_rate false_alarms preferred",
    "permille": "lost floor_lost",
    "whole": "words",
    "power": "largest",
    "word": "by",
    "signed": "gain_by",
    "plain": "imputed",
    "tenths": "lift",
}
CELLS = {column: look for look, columns in _LOOKS.items() for column in columns.split()}
"""How the cells of a column look, where numbers have not three decimals."""

METHOD = {
    "Metric values": "{dialect}.",
    "Means": "over the judged queries of the split {split}. A judged query without results counts 0; a query without "
    "judgments is left out.",
    "Limit": "every configuration returns at most {limit} entries for a query.",
    "Vectors": "{model}<<, made from the text {recipe}>>; the same for all configurations.",
    "Intervals": "{level:percent}, Student's t over queries (or their groups); those of differences allow for a query "
    "that was not drawn and differs by {unseen}; the more queries differ, the less it counts.",
    "Test": "two-sided sign-flip randomisation on the differences of paired queries, exact where there are at most "
    "{draws:count} patterns. The corrected p is Holm's over all challengers of one baseline, on the primary metric, "
    "{metric}.",
    "Better, worse": "the corrected p is below {alpha}, and 0 is outside the interval.",
    "No difference": "otherwise, when the whole interval of the difference is within ±{margin}.",
    "Too few queries to tell": "neither. It does not mean that the two are equal.",
    "Detectable, needed": "the smallest difference found with 80% power at two-sided {alpha:percent}, and about how "
    "many queries would find the observed difference with that power.",
    "Latency and calls": "median and 95th percentile per query on the machine that ran the comparison, and queries "
    "sent to the embedding model. They differ from run to run, so report.json leaves them out; they are in "
    "timing.json.",
}
"""How it was measured, by the terms of a report; a term without a fact that it names is left out."""

GLOSSARY = {
    "contender": "what searched: a system, a strategy, a weights file or a list of another engine.",
    "gain": "how much higher its mean is than that of what is used today, on the same queries.",
    "difference": "how much higher its mean is than the baseline's, on the same queries, with the interval that "
    "contains the true difference in 95 of 100 such samples of queries.",
    "verdict": "better and worse: the corrected p is below {alpha}, and 0 is outside the interval. No difference: the "
    "whole interval is within ±{margin}. Too few queries to tell: these cannot decide it, which does not mean "
    "that the two are equal.",
    "p50_ms": "half of the searches took less time than this, on the machine that measured it.",
    "p95_ms": "95 of 100 searches took less time than this.",
    "embedded": "how many of the queries had to be sent to the embedding model.",
    "unbeaten": "no other row is at least as good in metric, latency and queries embedded, and better in one.",
    "challenger": "what is compared with the baseline.",
    "p": "how often a difference at least this large would appear if the two were equally good and each query's "
    "difference had its sign by chance.",
    "p_holm": "p after Holm's correction: with many challengers one looks good by chance.",
    "counts": "the number of queries on which the challenger is better, equal and worse.",
    "detectable": "the smallest true difference that as many queries would show in 4 of 5 cases.",
    "category": "the kind of query, as the data set names it.",
    "queries": "how many queries the row is about.",
    "before": "the mean of what is used today, or of the baseline.",
    "after": "the mean of what is proposed instead, or of the best of the others.",
    "p_by_category": "p after the correction of Benjamini and Hochberg over the categories: exploratory, a hint where "
    "to look and no proof.",
    "layered": "a configuration that searches abstracts, then overviews, then details.",
    "at_threshold": "queries for which an abstract was similar enough.",
    "lower_step": "queries for which one was similar enough at a lower threshold only.",
    "all_details": "queries for which none was, so that all details were searched.",
    "no_result": "queries for which nothing was found.",
    "l0": "the share of queries on which this layer let something through.",
    "query": "the text of the query, its id and its category.",
}
"""What columns mean, by their keys, in words for people who dislike statistics."""

HEADINGS: dict[str, str] = {
    # of the pages of a report: titles, facts, and the notes below figures
    "page_compare": "Search strategies on {data}",
    "page_recommend": "Search strategies on {data}",
    "page_tune": "Weights of <<{strategy:strategy}>> on {data}",
    "page_gate": "Gate of {data}",
    "page_learn": "Learned from feedback on {data}",
    "title_notices": "Before you read on",
    "title_decision": "Recommendation",
    "title_differences": "Differences to the baseline",
    "title_curve": "What the weight changes",
    "title_queries": "Queries",
    "title_wide": "Queries with the widest range of values",
    "title_metrics": "All metrics",
    "title_strategies": "Strategies",
    "title_glossary": "What the columns mean",
    "title_method": "Method",
    "title_provenance": "Where this comes from",
    "fact_entries": "entries",
    "fact_queries": "queries",
    "fact_judged": "judged",
    "fact_split": "split",
    "fact_limit": "limit",
    "fact_model": "model",
    "fact_as_of": "as of",
    "fact_licence": "licence",
    "fact_set_apart": "set apart",
    "apart": "{count:count} queries of the split log, for simulated feedback",
    "term_verdict": "verdict",
    "term_gain": "gain promised ({metric})",
    "term_unstated": "not stated",
    "term_worse": "probability that it is worse",
    "term_bound": "nothing beats the current one by more than",
    "term_candidates": "candidates",
    "term_asked": "queries, each used for choosing and proof",
    "term_tool": "tool",
    "term_command": "command",
    "term_data": "data set (SHA-256)",
    "term_report": "report.json (SHA-256)",
    "note_differences": "Right of the line is better than {baseline}. Filled: better or worse by the corrected test; "
    "hollow: not decided, or chosen on these queries and therefore not tested; diamond: the choice. Within the band "
    "(±{margin}) differences do not matter.",
    "note_curve": "{metric} on the queries that were tuned on. A curve that is flat around the chosen weight means "
    "that its exact value matters little.",
    "note_categories": "{right} minus {left}. In brackets: the number of queries; the fewest are not drawn.",
    "figure_differences": "Differences to the baseline with 95% intervals; the table has the same numbers",
    "figure_curve": "{metric} against the weight",
    "figure_categories": "Differences by category with 95% intervals",
    "all_alike": "All configurations have the same value on every query.",
    "legend_wide": "{metric} by query, widest range first; <<the baseline and the best {others} others; >>the best "
    "value of each query is marked with *.",
    "no_room": "The lists of all queries did not fit into this page; they are in report.json.",
    "less_room": "To stay small this page has <<the lists of {count} of {whole} configurations>><<?both: and >><<the "
    "first {places} places>> of each query: the baseline and the best others.",
    "query": "query",
    # of figures
    "axis_means": "{metric}, mean and 95% interval",
    "axis_difference": "difference in {metric}",
    "axis_gain": "gain in {metric}",
    "axis_sides": "{metric}, {right} less {left}",
    "word_expected": "{gain} expected",
    "word_choice": "the choice, on new queries",
    "word_today": "today: {baseline}",
    # of a table in LaTeX
    "latex_needs": r"Needs \usepackage{booktabs,amssymb}; the text names it by Table~\ref{{label}}.",
    "latex_system": "System",
    "latex_means": "Means over <<{queries} >>queries of {data}<<, lists of {limit}>>.\nBest in bold, second best underlined.",
    "latex_marks": "{better} ({worse}): better (worse) than {baseline} in {metric},",
    "latex_no_marks": "No system is significantly better or worse than {baseline} in {metric},",
    "latex_test": "two-sided paired randomisation test, $p < 0.05$ after Holm's correction.",
    "latex_chosen": "{chosen}: chosen<<; out of fold its gain is {gain} {metric} {around}>>.",
    "latex_tuned": "{tuned}: tuned on these queries, so its mean is optimistic.",
    # of tables
    "title_contenders": "Leaderboard",
    "title_tests": "Tests",
    "title_agreement": "How far the lists agree",
    "title_categories": "Categories of queries",
    "title_silence": "What is shown where nothing fits",
    "title_floors": "What other floors would do",
    "title_stale": "What was replaced or has expired",
    "title_runner_up": "The next best",
    "title_layers": "Layered searches",
    "title_layer_times": "Milliseconds of each layer",
    "title_verification": "Check by ir_measures",
    # of columns
    "contender": "",
    "interval": "{metric} [95%]",
    "gain": "against <<{baseline}>> [95%]",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "p99_ms": "p99 ms",
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
    "jaccard": "Jaccard@10",
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
    "ahead": "the choice is ahead by [95%]",
    "told_apart": "told apart by these queries",
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
    # below tables
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
    "legend_agreement": "RBO: how alike two lists are, 0 to 1, with most weight on the first places. Jaccard@10: the "
    "share of the entries in the first ten of either that is in both.",
    # of all
    "dialect": "trec_eval: linear gain, discount log2(rank + 1), ideal cut at k; {ties:semicolons}; queries that "
    "nothing answers are left out",
    "ties_answers": "answers in the order given",
    "ties_configurations": "ties by entry id, ascending",
    "ties_lists": "ties of a recorded list in its order, of fusions by entry id, ascending",
    "ties_runs": "ties of runs and tables by entry id, descending",
    "about": "{data} ({split}): {queries:queries}, limit {limit}<<, intents {intents}>>, vectors {model}",
    "note": "note: {text}",
    **gate.HEADINGS,
    **learn.HEADINGS,
}
