"""The sentences of compare, and those that several verbs say: notices on data, steps that any of them may advise."""

_PURPOSE = "<<?settle: to settle it>><<?halve: to halve the uncertainty>><<?decide:; then your labels decide>>"
_MOVED = (
    "<<; move {vectors:and} out of the folder>><< (they do not cover new queries: then use "
    "{embedders:either}, or tune again with lsa)>>"
)
_COUNTS = "p is {p:number}, and {p_holm:number} after Holm's correction for {tried} contenders"
_FLATTERED = "its values here are too high"

_NAME = "{choice:best_one}<<, best of {best_of},>><<, one of {one_of},>>"
_SURE = "<< ({gain:range}, 95% sure; {worse:odds})>><<?vague: on these queries, which are too few to say more>>"
_CHANGE = f"changes {{metric}} by {{gain:mean}} against <<{{used:yours}}>><<{{baseline}}>>{_SURE}"
_CEILING = (
    "Ceiling: a learned model over all recorded signals reaches {metric} {learned:number} out of fold, and "
    "<<{other:best_one} reaches>><<?tuned:tuned weights reach>> {reached:number} ({gain:mean}<<, {gain:span}, 95% sure>>)."
)
_NO_LABELS = "Keep {baseline} for now: there are no labels, so quality is unknown"

SENTENCES: dict[str, str] = {
    # of compare
    "better": f"Better: {_NAME} gains {{gain:mean}} {{metric}} over <<{{used:yours}}>><<{{baseline}}>>{_SURE}.",
    "worse": f"Keep <<{{used:yours}}>><<{{baseline}}>>: {_NAME} changes {{metric}} by {{gain:mean}}{_SURE}.",
    "same": f"No difference of {{margin}} or more: {_NAME} {_CHANGE}.",
    "open": f"Too few queries to tell<<, corrected for {{tried}} contenders>>: {_NAME} {_CHANGE}.",
    "equal": f"Equal on every query: {_NAME} has the {{metric}} of <<{{used:yours}}>><<{{baseline}}>>.",
    "alone": "Nothing to compare with: {choice:brief} has {value:number} {metric}. Name a second contender.",
    "disagree": f"{_NO_LABELS}. The configurations disagree on {{disagreement:percent}} of the top 10 (by rank-biased "
    "overlap).",
    "disagree_alone": f"{_NO_LABELS}. Name a second contender to see where they disagree.",
    "flattered": "It was tuned on these queries, so the gain is too high.",
    "compare_today": "compare it with your current search, such as {today}",
    "label_found": "label more queries, with the results of both",
    "label_both": "label the results of both that have no label",
    "only_lists": "it is a list without weights to tune<<?more:; look for a better search>>",
    "search_tuned": "its weights are tuned already; search with them",
    "find_best": "tune its weights and prove them",
    "find_better": "look for a better search",
    "find_better_still": "look for better weights and prove them",
    # of a learned model
    "ceiling_more": f"{_CEILING} A learned model may be worth a project.",
    "ceiling_tune": f"{_CEILING} `recommend --ceiling` says how much of that tuned weights reach.",
    "ceiling_same": f"{_CEILING} It gains less than {{margin}}, so with these labels a model is not worth a project. More labels "
    "or other signals may help.",
    "ceiling_open": f"{_CEILING} These queries are too few to say whether a model is worth a project.",
    "ceiling_few": "No ceiling: a learned model needs at least {fewest} different labelled queries.",
    # of two kept runs
    "runs_apart": "Run {new}, {label}, against run {old}, {other}: {change} {metric} over {queries} queries, p {p}: "
    "{verdict}.",
    "runs_by_another": "Cannot compare: run {old} has another {what} than run {new}.",
    "runs_without_values": "Cannot compare: the two runs share no query with the same text and labels.",
    "silent": "{signal} ({labels:and}) finds nothing for {silent} of {queries} queries: it cannot read the script of your "
    "notes, or it wants all words of a query in one note; bm25 needs neither",
    "accidental": "{signal} ({labels:and}) finds no more than with the words of another query ({metric} {value:number}): "
    "check that it can read the language and the script of your notes; bm25 reads every script",
    "plain_text": "{text}",  # by a data set, an endpoint, the engine
    # on lists and labels
    "recorded_lists": "the recording has lists of other engines; their filters, depth and embedding calls are unknown, so "
    "latency and embedded queries are not shown",
    "shared_recipe": "all use the recorded vectors of {recipe}; these systems would embed another text: "
    "{labels:semicolons}",
    "layer_stands_in": "no entry has vectors of the layer {layer} (l0: abstracts, l1: overviews, l2: full entries); layered "
    "search (cortex_mem) uses the vectors of the text",
    "undated": "{count} of {entries} entries have no date; recency ranks them as new",
    "unclassified": "{labels:semicolons}: queries have no intent, so all use the default; see --intents given",
    "cached": "latencies leave out the embedding of queries by {model}: the vectors come from the cache",
    "other_scale": "{label}: the floor was measured on another scale: <<the model is {now}, and was "
    "{then}>><<?both:; >><<?changed:the data set has changed since>>; find it again with --floor",
    "no_abstract": "{label}: {count} of {queries} queries matched no abstract at any threshold and searched all details",
    "reduced": "{label} runs as {left}: {data} has no {missing:and} (embedder: {model})",
    "not_reranked": "{label} is not re-ranked: {why}",
    "weightless": "{label}: {term} has no effect on {without} of {of:queries}: no score is positive there, and "
    "normalize=max sets such a list to 0; use normalize=minmax",
    "apart": "{label} adds scores of different ranges ({reached:and}): <<{metric} {before:number} as it is, "
    "{metric} {after:number} with normalize=minmax>><<?unmeasured:write normalize=minmax>>",
    "unknown_ids": "{label}: {odd} of {ids} ids are not in this corpus and count as not relevant: "
    "{named:and}<<?more:, ...>>",
    "foreign_queries": "{label}: {odd} of {queries} queries are not in {data} and are ignored: "
    "{named:and}<<?more:, ...>>",
    "repeated": "{label}: {places} results repeat an entry of their list and are dropped",
    "no_list": "{label} has no list for {missing} of {queries} queries, which score 0<<; its query ids are "
    "{named:and}>><<?more:, ...>><<, those of the data set {first}, ...>>",
    "without_text": "{label} does not run {count:queries} without text, which score 0",
    "unscoped": "{count} queries have a filter<<?column: (column filter)>>; {label} has to apply it",
    "strangers": "{count} entries of the lists are not in {data}",
    "session": "{label}: {text}",
    "empty": "of {queries} queries, so many return no result: {counts:and}",
    "shallow": "the limit {limit} is below the cutoff of {metrics:and}",
    # on values and vectors
    "tuned_edited": "{label} was edited after tuning, so the gain that the file states is not of these weights",
    "tuned_other_state": "{label} was tuned on an earlier state of this data set; where queries and labels are the same, "
    f"{_FLATTERED}",
    "tuned_here": "{label} was tuned on <<?all:these queries>><<{both} of these {queries} queries>> and their labels, so "
    f"{_FLATTERED}",
    "tell_little": "{queries} labelled queries detect only very large differences",
    "few_queries": "{queries} labelled queries typically detect differences of about {detectable:hundredths} or more "
    "(80% power)",
    "scopes": "the {queries} queries share {scopes} scopes, and queries of one scope vary together; they count as "
    "about {worth:integer} independent queries; set `group` in queries.jsonl so that intervals allow for it",
    "nearly": "{count:asks} nearly the same as another ({pairs:semicolons}<<?more:; ...>>), so the {queries} queries "
    'count as {units}; if they ask different things, write "groups": "given" into dataset.json',
    "judged_once": "nobody labelled a pair twice, so it is unknown how far the labels can be trusted<<; label {count} pairs "
    "again: {command:command}; then add --apply to the command>>",
    "judged_twice": "{count:pairs} were labelled twice: {equal:percent} have the same grade<<, weighted kappa {kappa:number}>>"
    "<<?low:; labels that differ so much may favour one strategy: label again where they differ>>",
    "unjudged": "unlabelled results count as not relevant; labelled in the top 10: {share:percent} of {baseline:yours}"
    "<<, fewer in ({fewer:some})>><<, more in ({more:some})>>; a list with fewer may be better than it looks"
    "<<; label the differences: {command:command}>>",
    "lsa": "vectors are LSA, fitted on these texts; a neural model may change the ranking of strategies"
    "<<; --embedder {kind} is installed here>>",
    "interval_holds_zero": f"{_COUNTS}, but the interval contains 0",
    "interval_holds_zero_alone": "p is {p:number}, but the interval contains 0",
    "p_proves_nothing": f"{_COUNTS}, so nothing is proven; interval and odds are without the correction",
    "p_proves_nothing_alone": "p is {p:number}, so nothing is proven (0.05)",
    # steps that several verbs advise
    "index_once": "build its index once",
    "search": "search with it",
    "try_it": "try it",
    "export": "write it for {target}",
    "install": "install the model first",
    "install_large": "install the model first, which brings PyTorch and is large",
    "install_light": "or install the same model without PyTorch",
    "choose_light": "or choose weights for the same model without PyTorch",
    "decide": "decide by these labels<< (it may replace {replaced}, and prints how to undo that)>>",
    "judge_pairs": "label {pairs:pairs} of query and entry; fewer do not change the answer",
    "label_more": "label more of your queries",
    "label_so_many": f"label about {{more:more_queries}}{_PURPOSE}",
    "label_and_write": f"label about {{more}} more queries ({{left}} without labels; write the others){_PURPOSE}",
    "label_them": "label them",
    "nothing_found_for": "{pool:and} find nothing for {count:queries} without labels ({named:and}<<?more:, ...>>); to label "
    'these too, name other contenders; if nothing answers them, write "answerable": false into queries.jsonl.',
    "write_queries": "<<?all:all queries have labels; >>add <<about {more} >>new queries to {file} and label them"
    f"{_MOVED}",
}

ANALYZERS = {
    "bm25.identifiers": "split words by the filter word_delimiter_graph, for both with preserve_original "
    "(Elasticsearch, OpenSearch), elsewhere before a text is indexed",
    "bm25.ngrams": "index words by an ngram tokenizer of that length (Elasticsearch, OpenSearch), match: gram "
    "(Vespa), for 3 the tokenization trigram (Weaviate) or pg_trgm (PostgreSQL)",
    "bm25.stem": "set the analyzer of that language (Elasticsearch, OpenSearch), the language (Vespa) or the text "
    "search configuration (PostgreSQL); Weaviate and Qdrant stem nothing",
    "bm25.words": "let the index keep stop words",
}
OF_FORMULA = "set it in the BM25 of that index"
"""How other engines split words as the options of bm25 do; its other options are numbers of its formula."""
