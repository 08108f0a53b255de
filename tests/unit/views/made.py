"""Small results, in which every free text may be hostile."""

from steelyard_eval.result import structs
from steelyard_eval.result.structs import Estimate, Message, Paired, Provenance, QueryRow, Result, Row, Step, Table

HOSTILE = (
    "<script>alert(1)</script>",
    "a|b*c_d`e",
    "\x1b[31mred\u202e\n# head",
    "{choice}<<x>>",
    "100% & $x$ \\input{/etc}",
)


def paired(mean, verdict="open", low=None, high=None, **facts):
    """A test; its interval is 0.02 on either side, unless it is given."""
    around = Estimate(mean, mean - 0.02 if low is None else low, mean + 0.02 if high is None else high)
    given = {"p": 0.026, "p_holm": 0.13, "wins": 27, "ties": 21, "losses": 11, "worse": 0.016, "detectable": 0.11}
    return Paired(around, verdict, **{**given, **facts})


def row(label, mean, test=None, *, metric="nDCG@10", **facts):
    """A contender with one mean, whose interval is 0.05 on either side."""
    means = {metric: Estimate(mean, mean - 0.05, mean + 0.05), **facts.pop("means", {})}
    return Row(
        label, facts.pop("kind", "system"), facts.pop("strategy", label), means=means, against=test, **facts
    )


def result(*rows, text="x", **facts):
    """A comparison of rows, the first of which is the baseline; every free text in it is `text`."""
    rows = rows or (row(text, 0.6), row(f"{text}2", 0.7, paired(0.1, "better"), tuned=True, cost=COST))
    labels = [one.label for one in rows]
    lists = {
        label: structs.Listed([f"e{at}", text], [2.0, 1.0], {text: [1.5, 0.5]})
        for at, label in enumerate(labels[:2])
    }
    queries = [
        QueryRow(f"q{at}", text, text, None, dict.fromkeys(labels, at / 10), lists, {"e0": 1}) for at in range(3)
    ]
    better = {"choice": labels[-1], "metric": "nDCG@10", "gain": Estimate(0.1, 0.05, 0.15), "worse": 0.01}
    given = {
        "kind": "compare",
        "answer": structs.Answer(
            "better",
            better | {"used": text},
            [Message("plain_text", {"text": text})],
            [Step("plain_text", {"text": text}, ["steelyard", "judge", text])],
            text,
        ),
        "provenance": Provenance(
            "steelyard 1",
            structs.DataFacts(text, path=text, description=text, sha256="0", entries=9, queries=40, judged=40),
            command=["steelyard", "compare", text],
            metrics=list(dict.fromkeys(name for one in rows for name in one.means)),
            baseline=labels[0],
            limit=10,
            model=text,
            ties=["ties_runs"],
        ),
        "rows": list(rows),
        "notices": [Message("plain_text", {"text": text})],
        "tables": [Table("stale", ["outdated", "stale", "share"], [[text, 3, Estimate(0.3, 0.1, 0.5)]])],
        "queries": queries,
        "entries": {"e0": text},
    }
    return Result(**{**given, **facts})


COST = structs.Cost(embedded=1, latency=structs.Latency(0.25, 0.5, 0.75))


def decided(verdict="ship", text="x", **facts):
    """A recommendation of the second row."""
    rows = (row(text, 0.6), row(f"{text}2", 0.7, gain=Estimate(0.1, 0.05, 0.15), tuned=True, cost=COST))
    decision = structs.Decision(verdict, f"{text}2", Estimate(0.08, -0.01, 0.17), 0.1, 0.2)
    return result(*rows, text=text, kind="recommend", decision=decision, **facts)
