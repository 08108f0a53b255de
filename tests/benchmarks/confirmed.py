"""Whether pytrec_eval, ir_measures and ranx find the same values of every run."""

import ir_measures
import numpy as np
import ranx
from by_trec_eval import oracle

NAMES = {"nDCG": "ndcg", "R": "recall", "Success": "hit_rate", "RR": "mrr"}
"""Families of measures, as ranx names them. RecallAll, which none of the three has, is a recall of 1."""


def confirmed(qrels, lists, values, measures):
    """By tool the largest difference of any value, of lists and values by label, then by query and by measure."""
    worst = dict.fromkeys(("pytrec_eval", "ir_measures", "ranx"), 0.0)
    every = [measure for measure in measures if measure.family != "RecallAll"]
    theirs = {ir_measures.parse_measure(str(measure)): str(measure) for measure in every}
    names = {NAMES[own.family] + (f"@{own.cutoff}" if own.cutoff else ""): str(own) for own in every}
    flat = [ir_measures.Qrel(query, id_, grade) for query, own in qrels.items() for id_, grade in own.items()]
    plain = ranx.Qrels({query: {id_: g for id_, g in own.items() if g > 0} for query, own in qrels.items()})
    for label, own in lists.items():
        ours = values[label]
        run = {
            query: {id_: float(len(ids) - place) for place, id_ in enumerate(ids)}
            for query, ids in own.items()
            if query in qrels and ids
        }
        if not run:
            continue
        judged = {query: qrels[query] for query in run}
        by_trec = {str(measure): found for measure, found in oracle(run, judged, every).items()}
        for measure in set(map(str, measures)) - by_trec.keys():
            recall = by_trec[measure.replace("RecallAll", "R")]
            by_trec[measure] = {query: float(value > 1 - 1e-9) for query, value in recall.items()}
        for measure, found in by_trec.items():
            gaps = [abs(value - ours[measure][query]) for query, value in found.items()]
            worst["pytrec_eval"] = max(worst["pytrec_eval"], *gaps)
        for found in ir_measures.iter_calc(list(theirs), flat, run):
            gap = abs(found.value - ours[theirs[found.measure]][found.query_id])
            worst["ir_measures"] = max(worst["ir_measures"], gap)
        filled = ranx.Run({query: run.get(query) or {"": 0.0} for query in qrels})
        found = ranx.evaluate(plain, filled, list(names), return_mean=False, make_comparable=True)
        for name, scores in found.items():
            gap = np.abs(np.sort(scores) - np.sort([ours[names[name]][query] for query in qrels]))
            worst["ranx"] = max(worst["ranx"], float(gap.max()))
    return worst
