"""Makes the table of `docs/export.md`: which target can express which family of strategies.

``python -m steelyard_eval.export.families`` prints what stands at the end of that page.
"""

from __future__ import annotations

import sys

from steelyard.config.search_config import SearchConfig
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.export import TARGETS, Lost, Target, say

FAMILIES = (
    "vector",
    "rrf(fts, vector, k=60)",
    "rrf(fts, 2*vector, k=60)",
    "rrf(fts, vector, k=60, bonus=times(0.1))",
    "rrf(fts, vector, k=[10, 60])",
    "weighted_sum(0.3*fts, 0.7*vector, normalize=minmax)",
    "weighted_sum(0.3*fts, 0.7*vector, normalize=max)",
    "weighted_sum(0.3*fts, 0.7*vector, normalize=zscore)",
    "weighted_sum(0.3*fts, 0.7*vector, normalize=rank)",
    "weighted_sum(0.3*bm25, 0.7*vector, normalize=theoretical)",
    "weighted_sum(0.3*bm25, 0.7*vector, normalize=tmm)",
    "weighted_sum(0.5*fts, 0.5*vector, normalize=dbsf)",
    "weighted_sum(0.3*fts, 0.7*vector)",
    "weighted_sum(0.8*vector, 0.2*importance, normalize=minmax)",
    "comb_sum(fts, vector, normalize=minmax)",
    "comb_mnz(fts, vector, normalize=minmax)",
    "comb_max(fts, vector, normalize=minmax)",
    "isr(fts, vector)",
    "borda(fts, vector)",
    "rbc(fts, vector, phi=0.8)",
    "gated(vector, bm25, least=0.1)",
    "weighted_sum(1*vector, 0.2*recency(half_life=30d))",
    "weighted_sum(1*vector, 0.2*recency(half_life=30d, since=access))",
    "weighted_sum(1*vector, 0.2*recency(half_life=30d, since=never))",
    "weighted_sum(1*rrf(vector, fts, k=60), 0.2*recency(half_life=69h), 0.1*importance)",
    "weighted_sum(0.4*tfidf, 0.15*severity, 0.15*recency(half_life=365d), 0.15*tags, 0.15*domain)",
    "rrf(vector, bm25, 1.5*graph, k=60, bonus=times(0.1))",
    "boost(rrf(vector, bm25, 1.5*graph, k=60, bonus=times(0.1)), promised, document_type)",
    "boost(rrf(fts, vector, k=60), 0.5*decay)",
    "tiered(fts, min_results=3, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))",
    "layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.5, relax=[0.4, 0.3])",
    "by_intent(default=fts, fix_bug=vector)",
)


def table(config: SearchConfig) -> str:
    """Make a Markdown table of strategies by targets: yes, or the number of a reason that is listed below.

    `config` supplies the depths and the limit. The cells come from the exporters themselves.
    """
    reasons: dict[str, int] = {}
    lines = [f"| | {' | '.join(TARGETS)} |", "|---" * (len(TARGETS) + 1) + "|"]
    for family in FAMILIES:
        cells = [
            _cell(config.with_strategy(parse_strategy(family)), target, reasons) for target in TARGETS.values()
        ]
        lines.append(f"| `{family}` | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{number}. {reason}" for reason, number in reasons.items())]) + "\n"


def _cell(config: SearchConfig, target: Target, reasons: dict[str, int]) -> str:
    try:
        say(config, target)
    except Lost as lost:
        return str(reasons.setdefault(str(lost), len(reasons) + 1))
    return "yes"


if __name__ == "__main__":
    sys.stdout.write(table(find_system("plain").config(10)))
