"""Kills index, reindex, record, tune, report, serve and others at many moments, and checks that nothing is lost.

Half of the moments are steps (SIGKILL before a call that changes a file, drawn over all of them), half are
instants (SIGINT, drawn over 1.2 times the undisturbed time); see the classes for why. After each, the folder must
be sound and hold what was there before or what the command was to make; the command is then run again to its
end, and must leave what an undisturbed run leaves, and no file beside it. `make campaign` goes on with kills,
and where it stopped.
"""

import ctypes
import importlib
import importlib.util
import json
import os
import platform
import random
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median

import served
import states
from states import LostError, right
from tqdm import tqdm

_CALLS = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
"""Of <asm/unistd.h>: what changes files; open counts where it may create, as its argument of a number says."""
_TRACEME, _SYSCALL, _SETOPTIONS, _GET_SYSCALL_INFO = 0, 24, 0x4200, 0x420E
_TRACESYSGOOD, _EXITKILL = 1, 0x100000
_AT_SYSCALL = signal.SIGTRAP | 0x80

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Step:
    """Before the n-th call that changes a file, from 1; further than there are: never.

    What a killed process leaves depends on nothing but which of those calls it made: each step is one state of the
    disk. By the clock most moments would fall into arithmetic between two steps, and repeat each other. The calls
    are counted by the kernel (ptrace): nothing of ours is patched.
    """

    number: int


@dataclass(frozen=True)
class Instant:
    """An interrupt by the clock: it unwinds Python, so there it does matter in which line it arrives."""

    seconds: float


@dataclass(frozen=True)
class Ending:
    """How a child ended: its exit code, negative for a signal, and whether that was before its moment came."""

    code: int
    early: bool
    steps: int
    seconds: float


def traceable():
    """Why calls cannot be counted here; empty when they can."""
    if platform.system() != "Linux" or platform.machine() not in _CALLS:
        return f"no table of system calls for {platform.system()} on {platform.machine()}"
    ending = forked(lambda _: os.close(os.open("/dev/null", os.O_WRONLY | os.O_CREAT)), Step(10**9))
    return "" if ending.steps >= 1 else "ptrace is not allowed here"


def forked(work, moment=None):
    """Run `work` in a child until it ends or `moment` comes; its code is that of SystemExit, 99 for a fault.

    `work` is given a function to call last before the program under test: then the clock starts.
    """
    heard, ready = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    child = os.fork()
    if child == 0:
        _child(work, ready, isinstance(moment, Step))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.close(ready)
    if isinstance(moment, Step):
        begin = time.monotonic()
        steps, status = _counted(child, moment.number)
        early = steps < moment.number
    else:
        os.read(heard, 1)
        begin = time.monotonic()
        early = moment is None or _ends_within(child, moment.seconds)
        if not early:
            os.kill(child, signal.SIGINT)
        steps, status = 0, os.waitpid(child, 0)[1]
    os.close(heard)
    return Ending(os.waitstatus_to_exitcode(status), early, steps, time.monotonic() - begin)


def _child(work, ready, traced):
    code = 0

    def begin():
        os.write(ready, b".")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if traced:
            _ptrace(_TRACEME, 0, 0, None)
            os.kill(os.getpid(), signal.SIGSTOP)
        work(begin)
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException as error:
        # An interrupt that came before the program had its first line is no fault of the program.
        code = 99
        passed = {Path(frame.filename).name for frame in traceback.extract_tb(error.__traceback__)}
        if isinstance(error, KeyboardInterrupt) and "main.py" not in passed:
            code = 130
        else:
            traceback.print_exc()
    finally:
        os._exit(code)


def _ends_within(child, seconds):
    """Wait until the time has come or the child has ended; it is reaped by the caller in both cases."""
    handle = os.pidfd_open(child)
    ended, _, _ = select.select([handle], [], [], seconds)
    os.close(handle)
    return bool(ended)


def _counted(child, last):
    calls = _CALLS[platform.machine()]
    info = (ctypes.c_ubyte * 88)()
    steps, deliver = 0, 0
    _, status = os.waitpid(child, 0)
    _ptrace(_SETOPTIONS, child, 0, _TRACESYSGOOD | _EXITKILL)
    while os.WIFSTOPPED(status):
        if _ptrace(_SYSCALL, child, 0, deliver):
            break  # ptrace is not allowed, and the child not traced
        _, status = os.waitpid(child, 0)
        deliver = 0
        if os.WIFSTOPPED(status) and os.WSTOPSIG(status) != _AT_SYSCALL:
            deliver = os.WSTOPSIG(status)
        elif os.WIFSTOPPED(status):
            _ptrace(_GET_SYSCALL_INFO, child, len(info), ctypes.addressof(info))
            steps += _changes(bytes(info), calls)
            if steps == last:
                os.kill(child, signal.SIGKILL)
                _, status = os.waitpid(child, 0)
    return steps, status


def _changes(info, calls):
    """Whether a stop is the entry of a call that changes a file; the layout is struct ptrace_syscall_info."""
    if info[0] != 1:
        return False
    number, *arguments = (int.from_bytes(info[at : at + 8], "little") for at in range(24, 80, 8))
    if str(number) in calls["open"]:
        return bool(arguments[calls["open"][str(number)]] & os.O_CREAT)
    return number in calls["change"]


def _ptrace(request, child, address, data):
    _libc.ptrace.restype = ctypes.c_long
    numbers, pointers = map(ctypes.c_long, (request, child)), map(ctypes.c_void_p, (address, data))
    return _libc.ptrace(*numbers, *pointers)


SERVER = "serve"  # killed while a client asks; see served.py
FILES = ("record", "tune", "report")  # commands that write drafts and rename them


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
        self.steps = self._run(place, Step(10**9)).steps
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
        return forked(partial(self._work, place), moment)

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
        allowed = self.command.allowed(found, self.before, self.after)
        right(allowed, f"the state after {moment} is neither the one before nor the one after")
        self.again(place)
        shutil.rmtree(place)
        if ending.early:
            return "ended_before"
        if ending.code == 0:
            return "unheard"
        return "before" if found == self.before else "after" if found == self.after else "between"

    def again(self, place):
        """Run to the end after a disturbance: it leaves what an undisturbed run leaves, and nothing else."""
        code = self._run(place).code
        right(code == 0, f"running again ended with {code}: {self.said(place)}")
        right(self.command.state(place / "out") == self.after, "running again leaves something else")
        left = sorted(set(_listing(place / "out")) ^ set(self.files))
        right(not left, f"left behind: {left}")

    def _ended_well(self, ending, moment, said):
        right("Traceback" not in said, f"a traceback after {moment}: {said}")
        if ending.code == 0:
            return
        if isinstance(moment, Step):
            right(ending.code == -9, f"ended with {ending.code} instead of being killed: {said}")
            return
        aside = ("warning: ", "note: ")
        told = [line for line in said.splitlines() if line.strip() and not line.startswith(aside)]
        right(ending.code == 130 and len(told) < 2, f"an interrupt gave exit {ending.code} and {said!r}")

    def pile(self, rounds):
        """The most hidden files there are when the command is killed again and again before its last steps."""
        place = self._fresh()
        most = 0
        for number in range(rounds):
            self._run(place, Step(max(1, self.steps - 3 - number % 12)))
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
    starts = states.commands()[name][-max(1, count // 2) :]  # each has a turn of a step and an instant
    yards = [Yard(root, command, 3 if count > 50 else 1) for command in starts]
    figures, problems = Counter(), []
    # Steps without replacement, so that none is tried twice before all were.
    ahead = [cycle(draw.sample(range(1, yard.steps + 1), yard.steps)) for yard in yards]
    for turn in range(2 * count):
        if figures["killed"] + figures["interrupted"] + len(problems) == count:
            break
        yard, step = yards[turn // 2 % len(yards)], turn % 2 == 0
        moment = Step(next(ahead[turn // 2 % len(yards)])) if step else None
        moment = moment or Instant(draw.random() * 1.2 * yard.seconds)
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
