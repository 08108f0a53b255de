"""Kills index, reindex, record, tune, report, serve and others at many moments, and checks that nothing is lost.

Half of the moments are steps (SIGKILL before a call that changes a file, drawn over all of them), half are
instants (SIGINT, drawn over 1.2 times the undisturbed time); see steps.py for why. After each, the folder must
be sound and hold what was there before or what the command was to make; the command is then run again to its
end, and must leave what an undisturbed run leaves, and no file beside it. `make campaign` goes on with kills,
and where it stopped.
"""

import importlib
import importlib.util
import os
import random
import shutil
import sys
import tempfile
import threading
from collections import Counter
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median

import served
import states
import steps
from states import LostError
from tqdm import tqdm

SERVER = "serve"
"""Killed while a client asks; see served.py."""
FILES = ("record", "tune", "report")
"""Commands that write drafts and rename them."""


def settle():
    """Words of a small vault are stored, too, and no child waits for one that was killed."""
    states.keep_words()
    # The lock of progress bars lies between processes: a child that is killed holding it would stop all others.
    tqdm.set_lock(threading.RLock())
    tqdm.monitor_interval = 0


def run_in(place, words, out, err, begin):
    """A command in a child of ours, which has no other use; `begin` is called before its first line."""
    os.chdir(place)
    for target, name in ((1, out), (2, err)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), target)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # also where pytest holds them
    begin()
    states.main(list(words))


class Yard:
    """Fresh folders to run one command in, with its undisturbed run as the measure."""

    def __init__(self, root, command, runs):
        self.root, self.command = root, command
        self.start = Path(tempfile.mkdtemp(dir=root, prefix="start-"))
        (self.start / "out").mkdir()
        command.prepare(root / "data", self.start / "out")
        self.before = command.state(self._fresh() / "out")
        place = self._fresh()
        self.steps = self._run(place, steps.Step(10**9)).steps
        self.after = command.state(place / "out")
        self.files = _listing(place / "out")
        self.seconds = median(self._undisturbed() for _ in range(runs))

    def _undisturbed(self):
        place = self._fresh()
        ending = self._run(place)
        if ending.code or self.command.state(place / "out") != self.after or _listing(place / "out") != self.files:
            raise LostError(f"two undisturbed runs differ, or failed ({ending}): {self.said(place)}")
        return ending.seconds

    def _fresh(self):
        place = Path(tempfile.mkdtemp(dir=self.root, prefix="run-"))
        shutil.copytree(self.start / "out", place / "out")
        (place / "data").symlink_to(self.root / "data")
        (place / "results.json").symlink_to(self.root / "results.json")
        return place

    def _run(self, place, moment=None):
        return steps.run(partial(self._work, place), moment)

    def _work(self, place, begin):
        run_in(place, self.command.words, "out.txt", "said.txt", begin)

    def said(self, place):
        path = place / "said.txt"  # a child that was killed at its first step has none
        return path.read_text()[-2000:] if path.exists() else ""

    def disturb(self, moment):
        """What was found after the moment, as `Figures` names it; LostError when it is not right."""
        place = self._fresh()
        ending = self._run(place, moment)
        self._ended_well(ending, moment, self.said(place))
        # Looked at in a copy, so that running again starts from what the dead process left, its log included.
        shutil.copytree(place / "out", place / "copy")
        found = self.command.state(place / "copy")
        if not self.command.allowed(found, self.before, self.after):
            raise LostError(f"the state after {moment} is neither the one before nor the one after")
        again = self._run(place)
        if again.code:
            raise LostError(f"running again ended with {again.code}: {self.said(place)}")
        if self.command.state(place / "out") != self.after:
            raise LostError("running again does not give what an undisturbed run gives")
        if _listing(place / "out") != self.files:
            raise LostError(f"left behind: {sorted(set(_listing(place / 'out')) ^ set(self.files))}")
        shutil.rmtree(place)
        if ending.early:
            return "ended_before"
        if ending.code == 0:
            return "unheard"
        return "before" if found == self.before else "after" if found == self.after else "between"

    def _ended_well(self, ending, moment, said):
        if "Traceback" in said:
            raise LostError(f"a traceback after {moment}: {said}")
        if ending.code == 0:
            return
        if isinstance(moment, steps.Step):
            if ending.code != -9:
                raise LostError(f"ended with {ending.code} instead of being killed: {said}")
            return
        aside = ("warning: ", "note: ")
        told = [line for line in said.splitlines() if line.strip() and not line.startswith(aside)]
        if ending.code != 130 or len(told) > 1:
            raise LostError(f"an interrupt gave exit {ending.code} and {said!r}")

    def pile(self, rounds):
        """The most hidden files there are when the command is killed again and again before its last steps."""
        place = self._fresh()
        most = 0
        for number in range(rounds):
            self._run(place, steps.Step(max(1, self.steps - 3 - number % 12)))
            most = max(most, len([name for name in _listing(place / "out") if name.endswith(".part")]))
        shutil.rmtree(place)
        return most


def _listing(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if not p.parent.name.endswith(".part"))


def kill(name, root, count, seed=0):
    """Disturb one command at `count` moments, not counting those that came after its end; the figures.

    `ended_before`: the moment was after the end. `unheard`: the interrupt came after the last line, or where
    Python drops it (a destructor). `before`, `between`, `after`: which state the others left; between is
    some files or parts old and some new.
    """
    draw = random.Random(f"{name} {seed}")  # noqa: S311 -- moments, not secrets
    if name == SERVER:
        return kill_server(root, count, draw)
    yards = [Yard(root, command, 3 if count > 50 else 1) for command in states.commands()[name]]
    figures, problems = Counter(), []
    # Steps without replacement, so that none is tried twice before all were.
    ahead = [cycle(draw.sample(range(1, yard.steps + 1), yard.steps)) for yard in yards]
    for turn in range(2 * count):
        if figures["killed"] + figures["interrupted"] + len(problems) == count:
            break
        yard, step = yards[turn // 2 % len(yards)], turn % 2 == 0
        moment = steps.Step(next(ahead[turn // 2 % len(yards)])) if step else None
        moment = moment or steps.Instant(draw.random() * 1.2 * yard.seconds)
        try:
            outcome = yard.disturb(moment)
        except Exception as error:
            problems.append(f"{yard.command.name} {moment}: {type(error).__name__}: {error}")
            continue
        figures[outcome] += 1
        if outcome not in ("ended_before", "unheard"):
            figures["killed" if step else "interrupted"] += 1
    for yard in yards if name in FILES else ():
        if (left := yard.pile(6)) > len(yard.after):
            problems.append(f"{yard.command.name}: {left} drafts are left by six killed runs")
    return {"command": name, "killed": 0, "interrupted": 0, **figures, "problems": problems}


def kill_server(root, count, draw):
    """Kill the server `count` times over one log; `after` counts what was acknowledged and is there."""
    importlib.import_module("steelyard_eval.extensions.serve.server")  # in us, so that each child has it
    log, lists, acts = root / "served.jsonl", set(), set()
    log.unlink(missing_ok=True)
    for _ in range(count):
        asking = served.disturb(root / "warm" / "vault", log, draw)
        lists |= asking.lists
        acts |= asking.acts
    gone, broken = served.lacking(log, lists, acts)
    problems = [f"acknowledged, and not in the log: {one}" for one in gone]
    problems += [f"{broken} broken lines after {count} kills"] if broken > count else []
    told = {"command": SERVER, "killed": count, "interrupted": 0}
    return {**told, "after": len(lists) + len(acts) - len(gone), "problems": problems}


def names():
    return [*states.commands(), *([SERVER] if importlib.util.find_spec("mcp") else [])]
