"""Makes the end of `docs/export.md`: which target can express which family of strategies, and why not the others.

``PYTHONPATH=engine:eval python tests/unit/export/families.py`` prints what stands at the end of that page.
"""

from __future__ import annotations

import sys
from collections import Counter

from steelyard.config import SearchConfig
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
    """Make a Markdown table of strategies by targets, and below it a section of each target with its reasons.

    `config` supplies the depths and the limit. The cells come from the exporters themselves.
    """
    why = {
        name: {family: _lost(config.with_strategy(parse_strategy(family)), target) for family in FAMILIES}
        for name, target in TARGETS.items()
    }
    lines = [f"| | {' | '.join(f'[{name}](#{name})' for name in TARGETS)} |", "|---" * (len(TARGETS) + 1) + "|"]
    for family in FAMILIES:
        lines.append(f"| `{family}` | {' | '.join('no' if why[name][family] else 'yes' for name in TARGETS)} |")
    for name, losses in why.items():
        lines += ["", f"### {name}", ""]
        for reason, count in Counter(filter(None, losses.values())).items():
            refused = "; ".join(f"`{family}`" for family, lost in losses.items() if lost == reason)
            many = "all" if count == len(FAMILIES) else "all others" if count > len(FAMILIES) / 2 else refused
            lines.append(f"- {many}: {reason}")
    return "\n".join(lines) + "\n"


def _lost(config: SearchConfig, target: Target) -> str:
    """Why a target cannot express a configuration; empty where it can."""
    try:
        say(config, target)
    except Lost as lost:
        return str(lost)
    return ""


if __name__ == "__main__":
    sys.stdout.write(table(find_system("plain").config(10)))
