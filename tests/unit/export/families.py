"""Makes the end of `docs/targets.md`: which target can express which family of strategies, and why not the others.

``PYTHONPATH=engine:eval python tests/unit/export/families.py`` prints what stands at the end of that page.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from steelyard.config import SearchConfig
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.export import TARGETS, Loss, Target, say

FAMILIES = json.loads(Path(__file__).with_name("families.json").read_text("utf-8"))


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
    except Loss as lost:
        return str(lost)
    return ""


if __name__ == "__main__":
    sys.stdout.write(table(find_system("plain").config(10)))
