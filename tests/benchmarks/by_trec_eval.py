"""trec_eval's own values, through pytrec_eval, for measures by our names."""

import pytrec_eval

WHOLE = {"nDCG": "ndcg", "RR": "recip_rank", "AP": "map"}
CUT = {"nDCG": "ndcg_cut_{}", "R": "recall_{}", "AP": "map_cut_{}", "P": "P_{}", "Success": "success_{}"}
CUT |= {"RR": "recip_rank"}


def oracle(run, qrels, measures):
    """The value of each measure for every query of `qrels` that has judgments; 0 where the run does not answer it.

    Judged and RecallAny and RecallAll are not in trec_eval and are left out. trec_eval orders a run by float32
    score, then by id descending.
    """
    named = {one: (WHOLE if one.cutoff is None else CUT).get(one.family, "") for one in measures}
    names = {one: name.format(one.cutoff) for one, name in named.items() if name}
    # Grades below 0 hang or crash pytrec_eval; in trec_eval they have no gain.
    clean = {q: {e: max(grade, 0) for e, grade in row.items()} for q, row in qrels.items() if row}
    found = pytrec_eval.RelevanceEvaluator(clean, set(names.values())).evaluate(
        {query: dict(scores) for query, scores in run.items()}
    )
    return {m: {q: read(m, found.get(q, {}).get(name, 0.0)) for q in clean} for m, name in names.items()}


def read(measure, value):
    """The value; RR@k is cut here, because trec_eval has no recip_rank at k: beyond k it is below 1/k."""
    late = measure.family == "RR" and measure.cutoff is not None and value * measure.cutoff < 1 - 1e-9
    return 0.0 if late else float(value)
