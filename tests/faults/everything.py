"""Everything that can go wrong around a command, in turn, going on where it stopped: `make campaign MINUTES=60`.

    python tests/faults/everything.py [--minutes 5] [--goal 100000] [--fresh] [--only NUMBER]

A piece of work is one of: kills and interrupts of a command that writes, a full disk, little memory, a file
system that is read only, two commands on one vault, a clock that goes backwards, a umask of 077, a locale, another
Python. Whatever happens, the folder holds what was there before or what the command was to make, the command ends
without a traceback, and run again it leaves what an undisturbed run leaves. The figures and a table of what was
covered are kept in reports/campaigns; `loop.py`, which searches without end, is a part of it.

STEELYARD_PYTHONS names other interpreters with Steelyard's dependencies, separated by colons.
"""

import contextlib
import functools
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import campaign
import kill
import states
from states import right

ROOT = Path(__file__).resolve().parents[2]
KILLS = 6  # kills in a piece of work
TABLE = "everything.md"
SETTLED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "SOURCE_DATE_EPOCH": "1780000000"}
"""A child is forked from a process of one thread; the date is in the weights file."""

BACKWARDS = (
    "import itertools, time; real, steps = time.time, itertools.count(); "
    "time.time = lambda: real() - 97.0 * next(steps); time.time_ns = lambda: int(time.time() * 1e9); "
)
LOCALES = ("C", "POSIX", "C.utf8", "tr_TR.UTF-8", "de_DE.ISO-8859-1")
ENCODINGS = ("", "ascii", "latin-1", "utf-8")
QUICK = ("index", "reindex", "record", "compare", "report", "export", "import", "act", "search")
"""Commands that another Python runs without compiling loops first."""


@functools.cache
def root():
    folder = Path(tempfile.mkdtemp(prefix="steelyard-everything-"))
    with contextlib.redirect_stdout(sys.stderr):
        states.bench(folder)
        for name, start in (("new", states.nothing), ("older", states.older_vault)):
            (folder / name).mkdir()
            start(folder / "data", folder / name)
    return folder


@functools.cache
def yard(name, start):
    """A command, from one of the states that it may start from; the last of them holds the most."""
    with contextlib.redirect_stdout(sys.stderr):
        return kill.Yard(root(), states.commands()[name][start], 1)


def one(rng, names=None):
    name = rng.choice(sorted(names or states.commands()))
    return yard(name, rng.randrange(len(states.commands()[name])))


def told(yard, place, code, *why):
    """It ended well, or one error says why; no traceback, no draft."""
    said = yard.said(place)
    right(code == 0 or (code == 4 and why), f"ended with {code}: {said}")
    right("Traceback" not in said, said)
    errors = [line for line in said.splitlines() if line.startswith("error:")]
    right(code == 0 or (len(errors) == 1 and any(text in errors[0] for text in why)), said)
    right(not [name for name in kill._listing(place / "out") if name.endswith(".part")], "a draft is left")


def ended(yard, place, code, *why):
    """The same, and it left what it makes, or all is sound."""
    told(yard, place, code, *why)
    found = yard.command.state(place / "out")
    right(found == yard.after or (code and yard.command.allowed(found, yard.before, yard.after)), f"code {code}")


def again(yard, place):
    yard.again(place)
    shutil.rmtree(place)


def kills(rng):
    with contextlib.redirect_stdout(sys.stderr):
        found = kill.kill(rng.choice(kill.names()), root(), KILLS, rng.random())
    right(not found["problems"], found["problems"])
    return {"kills": found["killed"] + found["interrupted"], f"kills of {found['command']}": found["killed"]}


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


class NoDiskError(Exception):
    """No file system could be mounted."""


@contextlib.contextmanager
def disk(place, options):
    """A small file system at `out`, with what stood there."""
    aside = place / "aside"
    (place / "out").rename(aside)
    (place / "out").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place / "out")]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        raise NoDiskError
    try:
        shutil.copytree(aside, place / "out", dirs_exist_ok=True)
        yield place / "out"
    finally:
        subprocess.run(["umount", "--lazy", place / "out"], check=True)


def full_disk(rng, yard=None, pages=None):
    yard = yard or one(rng)
    pages = rng.choice((0, 1, 3, 9, 40, 100, 300)) if pages is None else pages
    place = yard._fresh()
    with disk(place, "size=12m") as out:
        filler = out / ".filler.part"
        free = os.statvfs(out).f_bavail - pages
        filler.write_bytes(b"x" * max(0, free * os.statvfs(out).f_frsize))
        ending = yard._run(place)
        filler.unlink()
        ended(yard, place, ending.code, "space", "may be full")
        yard.again(place)
    shutil.rmtree(place)
    return {"full disks": 1, "full disks that were refused": int(ending.code == 4)}


def little_memory(rng, yard=None, extra=None):
    """A command that may take some megabytes more than the program has already."""
    yard = yard or one(rng)
    extra = rng.choice((0, 1, 2, 3, 5, 8, 13, 21, 34)) if extra is None else extra
    place = yard._fresh()

    def bounded(begin):
        lines = Path("/proc/self/status").read_text().splitlines()
        taken = next(int(line.split()[1]) for line in lines if line.startswith("VmData"))
        size = (taken << 10) + (extra << 20)
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
        yard._work(place, begin)

    ending = kill.forked(bounded, None)
    ended(yard, place, ending.code, "ran out of memory")
    again(yard, place)
    return {"little memory": 1, "little memory that was refused": int(ending.code == 4)}


def read_only(rng, yard=None):
    yard = yard or one(rng)
    place = yard._fresh()
    with disk(place, "size=12m") as out:
        subprocess.run(["mount", "-o", "remount,ro", "tmpfs", out], check=True)
        before = contents(out)
        ending = yard._run(place)
        told(yard, place, ending.code, "ermission")
        right(ending.code == 4 and contents(out) == before, "it was written")
    shutil.rmtree(place)
    return {"read-only file systems": 1}


PAIRS = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
"""Of two commands: what they start from, and the words of both."""


def begun(start):
    """A new place that holds what a start has made."""
    place = Path(tempfile.mkdtemp(dir=root(), prefix="race-"))
    shutil.copytree(root() / start, place / "out")
    (place / "data").symlink_to(root() / "data")
    return place


def race(start, *pair):
    """Both commands from one starting shot; their codes and what they said, and what the vault holds."""
    place = begun(start)
    shot, trigger = os.pipe()
    children = [os.fork() or _run(place, words, number, shot, trigger) for number, words in enumerate(pair)]
    os.close(shot)
    os.close(trigger)  # both read its end
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    said = [(place / f"err{number}").read_text() for number in range(len(pair))]
    right(
        pair[1][0] != "search" or json.loads((place / "out1").read_text() or "{}").get("hits"), "nothing is found"
    )
    state = states.vault_state(place / "out")
    shutil.rmtree(place)
    return codes, said, state


def _run(place, words, number, shot, trigger):
    code = 99
    try:
        os.close(trigger)
        kill.run_in(place, words, f"out{number}", f"err{number}", lambda: os.read(shot, 1))
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        os._exit(code)


def two_at_once(rng, label=None):
    label = label or rng.choice(sorted(PAIRS))
    start, *pair = PAIRS[label]
    codes, said, state = race(start, *pair)
    right(set(codes) <= {0, 4}, f"{label}: {codes} {said}")
    right(not any(one.strip().count("\n") or "Traceback" in one for one in said), f"{label}: {said}")
    right(state == alone(label), f"{label}: the vault holds something else than after one run")
    return {"two at once": 1, label: 1}


@functools.cache
def alone(label):
    start, *pair = PAIRS[label]
    with contextlib.redirect_stdout(sys.stderr), contextlib.chdir(begun(start)):
        for words in pair:
            states.command(*words)
        return states.vault_state(Path("out"))


def outside(yard, prelude="", python=sys.executable, **variables):
    place = yard._fresh()
    code = f"{prelude}import runpy; runpy.run_module('steelyard_eval', run_name='__main__')"
    words = [python, "-c", code, *yard.command.words]
    with (place / "said.txt").open("wb") as said:
        done = subprocess.run(words, cwd=place, stdout=subprocess.DEVNULL, stderr=said, env=os.environ | variables)
    ended(yard, place, done.returncode)
    return place


def backwards(rng):
    yard = one(rng)
    again(yard, outside(yard, BACKWARDS))
    return {"clocks that go backwards": 1}


def umask(rng):
    yard = one(rng)
    old = {path.relative_to(yard.start) for path in yard.start.rglob("*")}
    place = outside(yard, "import os; os.umask(0o077); ")
    new = [path for path in (place / "out").rglob("*") if path.relative_to(place) not in old]
    open_to = [path.name for path in new if path.stat().st_mode & 0o077]
    right(not open_to, f"others may read {open_to}")
    again(yard, place)
    return {"umask 077": 1}


def locale(rng):
    yard, name = one(rng), rng.choice(LOCALES)
    encoding = rng.choice(ENCODINGS)
    named = {"PYTHONIOENCODING": encoding} if encoding else {}
    shutil.rmtree(outside(yard, LC_ALL=name, LANG=name, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", **named))
    return {"locales": 1, f"locale {name}": 1}


@functools.cache
def pythons():
    found = {}
    for path in filter(None, os.environ.get("STEELYARD_PYTHONS", "").split(":")):
        ask = "import sys, apsw, numpy, sqlite_vec; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=False)
        if not done.returncode:
            found[done.stdout.strip()] = path
    return found


def other_python(rng):
    if not pythons():
        return {"no other Python was named": 1}
    version = rng.choice(sorted(pythons()))
    yard = one(rng, QUICK)
    sources = f"{ROOT / 'engine'}:{ROOT / 'eval'}"
    shutil.rmtree(outside(yard, python=pythons()[version], PYTHONPATH=sources))
    return {"other Pythons": 1, f"Python {version}": 1}


KINDS = (
    *(kills, full_disk, kills, read_only, two_at_once, kills, little_memory),
    *(backwards, umask, kills, locale, other_python),
)


def work(number):
    try:
        return KINDS[number % len(KINDS)](random.Random(number))  # noqa: S311 -- moments, not secrets
    except NoDiskError:
        return {NoDiskError.__doc__: 1}


def table():
    state = json.loads((campaign.STATES / "everything.json").read_text())
    if (searches := campaign.STATES / "loop.json").exists():
        state["done"] |= json.loads(searches.read_text())["done"]
    rows = "".join(f"| {what} | {count:,} |\n" for what, count in sorted(state["done"].items()))
    faults = "".join(f"- piece {one['number']}: {one['fault'].splitlines()[0]}\n" for one in state["found"])
    head = f"{state['next']:,} pieces of work in {state['seconds'] / 60:.0f} minutes, {state['faults']} faults."
    text = f"# What `make campaign` covered\n\n{head}\n\n| | |\n|---|---|\n{rows}\n{faults}"
    (campaign.STATES / TABLE).write_text(text.rstrip("\n") + "\n")


def cli():
    if not SETTLED.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **SETTLED})  # noqa: S606 -- ourselves
    kill.settle()
    chosen = campaign.options(__doc__, 100_000).parse_args()
    code = campaign.campaign("everything", work, chosen)
    if chosen.only is None:
        table()
    shutil.rmtree(root(), ignore_errors=True)
    return code


if __name__ == "__main__":
    sys.exit(cli())
