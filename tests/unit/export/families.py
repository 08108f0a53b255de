"""Makes the end of `docs/targets.md`: which targets can express which family of strategies.

``PYTHONPATH=engine:eval python tests/unit/export/families.py`` prints what stands at the end of that page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from steelyard import SearchConfig, find_system, parse_strategy
from steelyard_eval.export import TARGETS, unsupported

FAMILIES = json.loads(Path(__file__).with_name("families.json").read_text("utf-8"))


def table(config: SearchConfig) -> str:
    """Make a Markdown table of strategies with the targets that take each, and a list of those that none takes.

    `config` supplies the depths and the limit. The cells come from the exporters themselves.
    """
    takes = {
        family: [name for name, one in TARGETS.items() if not (one.complete or unsupported(one, strategy))]
        for family in FAMILIES
        for strategy in [config.with_strategy(parse_strategy(family))]
    }
    lines = ["| strategy | targets |", "|---|---|"]
    lines += [f"| `{family}` | {', '.join(names)} |" for family, names in takes.items() if names]
    none = [f"- `{family}`" for family, names in takes.items() if not names]
    return "\n".join([*lines, "", "Only `python` takes these:", "", *none]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table(find_system("plain").config(10)))
