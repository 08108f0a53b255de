"""What the pages of a report and its figures say: titles, facts, notes, the method, the glossary."""

from __future__ import annotations

REPORT = {
    "page_compare": "Search strategies on {data}",
    "page_recommend": "Search strategies on {data}",
    "page_tune": "Weights of <<{strategy:strategy}>> on {data}",
    "page_gate": "Gate of {data}",
    "page_learn": "Learned from feedback on {data}",
    "title_notices": "Notes",
    "figure_answer": "{metric} of what is used today and of the choice, with 95% intervals; the first line has the numbers",
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
}
"""Of the pages of a report: titles, facts, and the notes below figures."""

METHOD = {
    "Metric values": "{dialect}.",
    "Means": "over the judged queries of the split {split}. A judged query without results counts 0; a query without "
    "judgments is left out.",
    "Candidates": "{candidates:count}; each query is used to choose and, out of fold, to prove.",
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
    "sent to the embedding model. Times differ from run to run, so report.json leaves them out.",
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

FIGURES = {
    "axis_means": "{metric}, mean and 95% interval",
    "axis_difference": "difference in {metric}",
    "axis_gain": "gain in {metric}",
    "axis_sides": "{metric}, {right} less {left}",
    "word_choice": "the choice, on new queries",
    "word_today": "today: {current}",
}
