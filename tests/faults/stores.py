"""Stores of other programs with changed bytes: each is imported, or ends in one message.

    python tests/faults/stores.py [--minutes 5] [--goal 20000] [--fresh] [--only NUMBER]

A piece of work is one store of STEELYARD_STORES, copied, with bytes of one file changed, cut or doubled.
"""

import os
import random
import shutil
import tempfile
from pathlib import Path

import fuzz

from steelyard.base.errors import SteelyardError
from steelyard_eval.extensions.importers import load_store

HERE = Path(__file__).resolve().parent
ROOT = Path(os.environ.get("STEELYARD_STORES") or HERE.parents[2] / "shared" / "stores")
SOURCES = (
    *("echovault-seed-era", "echovault-newest", "soleri", "spec-kit", "cortex-mem", "mem0", "claude-memory"),
    *("moltnet", "moltnet/moltnet.sql", "moltnet/export.json", "moltnet/entries.csv"),
    *("langgraph-sqlite/store.db", "mcp-memory/memory.jsonl", "basic-memory/notes"),
)


def work(number):
    chance = random.Random(number)  # noqa: S311 -- no secret
    source = ROOT / SOURCES[number % len(SOURCES)]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / source.name
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("expected.json"))
        else:
            shutil.copy2(source, copy)
        files = sorted(path for path in [copy, *copy.rglob("*")] if path.is_file())
        target = chance.choice(files)
        target.write_bytes(fuzz.mutate_bytes(chance, target.read_bytes()))
        try:
            load_store(copy)
        except SteelyardError as error:
            if "\n" in str(error).strip() and "faults" not in str(error):
                raise AssertionError(f"more than one message: {error}") from None
            return {"refused": 1}
        return {"imported": 1}


if __name__ == "__main__":
    import campaign

    campaign.main("stores", __doc__, 20_000, campaign.isolated(work, seconds=60))
