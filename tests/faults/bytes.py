"""The targets of fuzz.py, one after the other, going on where they stopped.

    python tests/faults/bytes.py [--minutes 5] [--goal 100000] [--fresh] [--only NUMBER]

A piece of work is COUNT inputs of one target: its seeds first, then mutants of them.
"""

import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
COUNT = 60


def beside(name):
    spec = importlib.util.spec_from_file_location(f"faults_{name}", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"faults_{name}"] = module
    spec.loader.exec_module(module)
    return module


campaign, fuzz = beside("campaign"), beside("fuzz")
NAMES = list(fuzz.TARGETS)


def work(number):
    """COUNT inputs of one target."""
    name = NAMES[number % len(NAMES)]
    tally = fuzz.run(name, number, COUNT)
    if tally.faults:
        raise AssertionError(f"{name}: {tally.faults}")
    return {"executions": COUNT, name: COUNT}


if __name__ == "__main__":
    fuzz.world()
    campaign.main("bytes", __doc__, 100_000, campaign.isolated(work, seconds=300))
