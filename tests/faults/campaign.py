"""Campaigns that go on where they stopped: a state file counts what was done, and each piece of work has a number.

    campaign(name, work, options)

calls ``work(number)`` for the next numbers until the minutes or the goal are used up. What it raises is a fault;
its number is kept, so that `--only NUMBER` runs it again. The same number is the same work on every machine.
"""

import argparse
import contextlib
import json
import multiprocessing
import resource
import sys
import time
import traceback
from pathlib import Path

STATES = Path(__file__).resolve().parents[2] / "reports" / "campaigns"
KEPT = 20  # faults whose text is kept
SAVED = 10.0  # seconds of work that a broken off run may lose


def options(description, goal):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long to work; 5 by default")
    parser.add_argument("--goal", type=int, default=goal, help=f"pieces of work in all; {goal} by default")
    parser.add_argument("--fresh", action="store_true", help="forget what was done before")
    parser.add_argument("--only", type=int, help="this one piece of work, with its traceback")
    return parser


def campaign(name, work, chosen):
    """Work until the time or the goal is reached; prints the state, and returns 1 when faults were found."""
    if chosen.only is not None:
        print(work(chosen.only))
        return 0
    path = STATES / f"{name}.json"
    state = {"next": 0, "faults": 0, "found": [], "done": {}, "seconds": 0.0}
    if path.exists() and not chosen.fresh:
        state = json.loads(path.read_text())
    end = time.monotonic() + 60 * chosen.minutes
    began = time.monotonic()
    while time.monotonic() < end and state["next"] < chosen.goal:
        one(state, work)
        if time.monotonic() - began > SAVED:
            save(path, state, began)
            began = time.monotonic()
    save(path, state, began)
    print(json.dumps({"campaign": name, "goal": chosen.goal, **state}, indent=1))
    return min(1, state["faults"])


def one(state, work):
    number = state["next"]
    try:
        for what, count in work(number).items():
            state["done"][what] = state["done"].get(what, 0) + count
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        state["faults"] += 1
        if len(state["found"]) < KEPT:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}:{last.lineno}"
            state["found"].append({"number": number, "fault": f"{type(error).__name__} at {place}: {error}"[:500]})
    state["next"] += 1


def save(path, state, began):
    state["seconds"] = round(state["seconds"] + time.monotonic() - began, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(state, indent=1))
    draft.replace(path)


def isolated(work, seconds, megabytes=8192):
    """The work in a process of its own, so that a crash, a hang or a flood of native code is a fault, too.

    `seconds` and `megabytes` bound each piece. The process is a fork, so what was loaded before is there.
    """
    context = multiprocessing.get_context("fork")

    def child(number, to):
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        try:
            to.send((work(number), ""))
        except BaseException:
            to.send((None, traceback.format_exc()[-60_000:]))

    def run(number):
        back, to = context.Pipe(duplex=False)
        process = context.Process(target=child, args=(number, to))
        process.start()
        to.close()
        done, said = None, f"no end within {seconds} s"
        if back.poll(seconds):
            with contextlib.suppress(EOFError):  # it crashed, and its code says how
                said = ""
                done, said = back.recv()
        else:
            process.kill()
        process.join()
        if done is None:
            raise AssertionError(f"ended with {process.exitcode}: {said[-400:]}")
        return done

    return run


def main(name, description, goal, work):
    sys.exit(campaign(name, work, options(description, goal).parse_args()))
