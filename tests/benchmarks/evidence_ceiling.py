"""What a learned ranker reaches on each collection beside weights that were chosen out of fold, too."""

import time

from evidence_matrices import DATA

from steelyard_eval.workbench import load

MEANING = {
    "ceiling_more": "a model may be worth a project",
    "ceiling_same": "a model gains less than 0.02",
    "ceiling_open": "open: too few queries",
}
HEADS = ("collection", "queries", "bm25", "tuned", "ceiling", "against tuned [95%]", "meaning")


def ceiling_row(name):
    """The numbers of the ceiling's sentence of `recommend`, with bm25 as what is used today."""
    begun = time.monotonic()
    result = load(DATA / name).recommend("bm25", ceiling=True).result
    said = next(one for one in result.answer.because if one.key.startswith("ceiling"))
    gain, row = said.facts["gain"], result.row("bm25")
    return {
        "queries": result.provenance.data.judged,
        "bm25": row.means["nDCG@10"].mean,
        "tuned": said.facts["reached"],
        "ceiling": said.facts["learned"],
        "gain": [gain.mean, gain.low, gain.high],
        "meaning": MEANING[said.key],
        "seconds": round(time.monotonic() - begun),
    }


def ceiling_table(rows):
    lines = [HEADS, ("---", *["---:"] * 5, "---")]
    for name, row in rows.items():
        mean, low, high = row["gain"]
        values = (f"{row[key]:.3f}" for key in HEADS[2:5])
        lines.append(
            (name, str(row["queries"]), *values, f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]", row["meaning"])
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
