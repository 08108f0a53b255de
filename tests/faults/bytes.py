"""The targets of fuzz.py, one after the other, going on where they stopped.

    python tests/faults/bytes.py [--minutes 5] [--goal 100000] [--fresh] [--only NUMBER] [--targets log,export]

A piece of work is COUNT inputs of one target: its seeds first, then mutants of them. Chosen targets have a state
of their own.
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


def work_of(names):
    def work(number):
        """COUNT inputs of one target."""
        name = names[number % len(names)]
        tally = fuzz.run(name, number, COUNT)
        if tally.faults:
            raise AssertionError(f"{name}: {tally.faults}")
        return {"executions": COUNT, name: COUNT}

    return campaign.isolated(work, seconds=300)


def cli():
    parser = campaign.options(__doc__, 100_000)
    every = list(fuzz.TARGETS)
    parser.add_argument("--targets", type=lambda text: text.split(","), default=every, help=", ".join(every))
    chosen = parser.parse_args()
    if strange := set(chosen.targets) - set(every):
        parser.error(f"no targets: {', '.join(sorted(strange))}")
    name = "bytes" if chosen.targets == every else f"bytes-{'-'.join(chosen.targets)}"
    fuzz.world()
    return campaign.campaign(name, work_of(chosen.targets), chosen)


if __name__ == "__main__":
    sys.exit(cli())
