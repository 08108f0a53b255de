"""What the pages of a report and its figures say: titles, facts, notes, the method, the glossary."""

REPORT = {
    "page_compare": "Search strategies on {data}",
    "page_recommend": "Search strategies on {data}",
    "page_tune": "Weights of <<{strategy:strategy}>> on {data}",
    "page_gate": "Gate of {data}",
    "page_learn": "Feedback on {data}",
    "title_notices": "Notes",
    "figure_answer": "{metric} today and of the choice, with 95% intervals; the first line has the numbers",
    "title_differences": "Differences to the baseline",
    "title_curve": "Effect of the weight",
    "title_queries": "Queries",
    "title_wide": "Queries on which the contenders differ most",
    "title_metrics": "All metrics",
    "title_strategies": "Strategies",
    "title_glossary": "Columns",
    "title_method": "Method",
    "title_provenance": "Source",
    "fact_entries": "entries",
    "fact_queries": "queries",
    "fact_judged": "labelled",
    "fact_split": "split",
    "fact_limit": "limit",
    "fact_model": "model",
    "fact_as_of": "as of",
    "fact_licence": "licence",
    "fact_set_apart": "left out",
    "apart": "{count:count} queries of the split log, for simulated feedback",
    "term_tool": "tool",
    "term_command": "command",
    "term_data": "data set (SHA-256)",
    "term_report": "report.json (SHA-256)",
    "note_differences": "Right of the line: better than {baseline}. Filled: better or worse by the corrected test. Hollow: "
    "undecided, or chosen on these queries and therefore not tested. Diamond: the choice. Differences within the band "
    "(±{margin}) do not matter.",
    "note_curve": "{metric} on the queries used for tuning. If the curve is flat around the chosen weight, its exact "
    "value matters little.",
    "note_categories": "{right} minus {left}. In brackets: the number of queries. The smallest categories are left out.",
    "figure_differences": "Differences to the baseline with 95% intervals; the table has the same numbers",
    "figure_curve": "{metric} against the weight",
    "figure_categories": "Differences by category with 95% intervals",
    "all_alike": "All contenders have the same value on every query.",
    "legend_wide": "{metric} by query, largest difference first<<; the baseline and the best {others} others>>. The best "
    "value of each query has a *.",
    "no_room": "The lists of all queries are too large for this page; they are in report.json.",
    "less_room": "To stay small, this page has <<the lists of {count} of {total} contenders>><<?both: and >><<the "
    "first {places} places>> of each query: the baseline and the best others.",
}
"""Of the pages of a report: titles, facts, and the notes below figures."""

METHOD = {
    "Metric values": "{dialect}.",
    "Means": "over the labelled queries of the split {split}. A labelled query without results counts 0; a query "
    "without labels is left out.",
    "Candidates": "{candidates:count}; each query is used to choose and, in cross-validation, to prove.",
    "Limit": "every contender returns at most {limit} entries for a query.",
    "Vectors": "{model}<<, made from the text {recipe}>>; the same for all contenders.",
    "Intervals": "{level:percent}, Student's t over queries (or their groups). Intervals of differences allow for one "
    "more query, outside the sample, that differs by {unseen}; the more queries differ, the less it counts.",
    "Test": "two-sided sign-flip randomisation on the paired differences, exact up to {draws:count} patterns. The corrected "
    "p is Holm's over all challengers of one baseline, on the primary metric, {metric}.",
    "Better, worse": "the corrected p is below {alpha}, and 0 is outside the interval.",
    "No difference": "otherwise, if the interval of the difference is within ±{margin}.",
    "Too few queries to tell": "neither; the two need not be equal.",
    "Detectable, needed": "the smallest difference that the test finds with 80% power at two-sided {alpha:percent}, and about "
    "how many queries find the observed difference with that power.",
    "Latency and calls": "median and 95th percentile per query on the machine that ran the comparison, and queries "
    "sent to the embedding model. Times change from run to run, so report.json leaves them out.",
}
"""How it was measured, by the terms of a report; a term without a fact that it names is left out."""

GLOSSARY = {
    "contender": "a system, a strategy, a weights file or the lists of another engine.",
    "gain": "its mean less that of your search today, on the same queries.",
    "difference": "its mean less the baseline's, on the same queries, with the interval that contains the true "
    "difference in 95 of 100 samples of queries.",
    "verdict": "better and worse: the corrected p is below {alpha}, and 0 is outside the interval. No difference: the "
    "interval is within ±{margin}. Too few queries to tell: neither; the two need not be equal.",
    "p50_ms": "half of the searches took less time, on the machine that measured it.",
    "p95_ms": "95 of 100 searches took less time.",
    "embedded": "how many queries were sent to the embedding model.",
    "unbeaten": "no other row is at least as good in metric, latency and embedded queries, and better in one of them.",
    "challenger": "the contender that is compared with the baseline.",
    "p": "how often a difference at least this large appears by chance if the two are equally good.",
    "p_holm": "p after Holm's correction: among many challengers, one looks good by chance.",
    "counts": "the number of queries on which the challenger is better, equal and worse.",
    "detectable": "the smallest true difference that so many queries show in 4 of 5 cases.",
    "category": "the kind of query, as the data set names it.",
    "queries": "the number of queries.",
    "before": "the mean of your search today, or of the baseline.",
    "after": "the mean of the choice, or of the best of the others.",
    "p_by_category": "p after Benjamini and Hochberg's correction over the categories: a hint where to look, no proof.",
    "layered": "a contender that searches abstracts, then overviews, then details.",
    "at_threshold": "queries with an abstract above the threshold.",
    "lower_step": "queries with an abstract above a lower threshold only.",
    "all_details": "queries without one, which searched all details.",
    "no_result": "queries without any result.",
    "l0": "the share of queries for which this layer let an entry through.",
    "query": "the text of the query, its id and its category.",
}
"""What columns mean, by their keys, in words for people who dislike statistics."""

FIGURES = {
    "axis_means": "{metric}, mean and 95% interval",
    "axis_difference": "difference in {metric}",
    "axis_gain": "gain in {metric}",
    "axis_sides": "{metric}, {right} less {left}",
    "word_choice": "the choice, expected",
    "word_today": "today: {current}",
}
