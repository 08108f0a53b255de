"""Two commands on one vault at once, again and again.

    python tests/faults/race.py [--rounds 20]

prints one JSON object a pair: how the commands ended, and whether the vault holds in the end what one
command after the other would have left.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

_spec = importlib.util.spec_from_file_location("faults_kill", Path(__file__).with_name("kill.py"))
kill = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kill)
commands = kill.commands

INDEX, REINDEX = ("index", "data", "out/vault"), ("index", "out/vault", "--rebuild")
PAIRS = {
    "index and index, new": ("new", INDEX, INDEX),
    "index and index": ("older", INDEX, INDEX),
    "index and reindex": ("older", INDEX, REINDEX),
    "reindex and reindex": ("older", REINDEX, REINDEX),
    "index and search": ("older", INDEX, ("search", "out/vault", "jwt signing keys", "--json")),
    "reindex and search": ("older", REINDEX, ("search", "out/vault", "jwt signing keys", "--json")),
}


def race(root, start, *pair):
    """Both commands from one starting shot; their codes and what they said, and what the vault holds."""
    place = Path(tempfile.mkdtemp(dir=root, prefix="race-"))
    shutil.copytree(root / start, place / "out")
    (place / "data").symlink_to(root / "data")
    shot, trigger = os.pipe()
    children = [os.fork() or _run(place, words, number, shot, trigger) for number, words in enumerate(pair)]
    os.close(shot)
    os.close(trigger)  # both read its end
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    said = [(place / f"err{number}").read_text() for number in range(len(pair))]
    if pair[1][0] == "search" and not json.loads((place / "out1").read_text() or "{}").get("hits"):
        said[1] += "\n".join(["the search", "found nothing"])
    state = commands.vault_state(place / "out")
    shutil.rmtree(place)
    return codes, said, state


def _run(place, words, number, shot, trigger):
    code = 99
    try:
        os.close(trigger)
        os.chdir(place)
        for target, name in ((1, f"out{number}"), (2, f"err{number}")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), target)
        sys.stdout = sys.__stdout__
        os.read(shot, 1)
        commands.main(list(words))
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        os._exit(code)


def rounds(root, count):
    """The figures of each pair."""
    for name, start in (("new", commands.nothing), ("older", commands.older_vault)):
        (root / name).mkdir()
        start(root / "data", root / name)
    for label, (start, *pair) in PAIRS.items():
        wanted = alone(root, start, pair)
        ended, problems = Counter(), []
        for _ in range(count):
            codes, said, state = race(root, start, *pair)
            ended[" ".join(map(str, codes))] += 1
            if any(said_one.strip().count("\n") or "Traceback" in said_one for said_one in said):
                problems.append(f"said {said}")
            if state != wanted:
                problems.append(f"{codes}: the vault holds something else than after one run; {said}")
        yield {"pair": label, "rounds": count, "codes": dict(ended), "problems": problems}


def alone(root, start, pair):
    """What the vault holds after the commands, one after the other."""
    place = Path(tempfile.mkdtemp(dir=root, prefix="alone-"))
    shutil.copytree(root / start, place / "out")
    for words in pair:
        paths = [
            str(root / "data") if word == "data" else str(place / word) if "/" in word else word for word in words
        ]
        commands.command(*paths)
    return commands.vault_state(place / "out")


def cli():
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    chosen = parser.parse_args()
    kill.settle()
    lost = 0
    with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
        with contextlib.redirect_stdout(sys.stderr):
            root = commands.bench(Path(folder))
            found = list(rounds(root, chosen.rounds))
        for figures in found:
            lost += len(figures["problems"])
            print(json.dumps(figures), flush=True)
    return min(lost, 1)


if __name__ == "__main__":
    sys.exit(cli())
