"""Writers and readers of a store in PostgreSQL that are killed, and the server with them.

    STEELYARD_POSTGRES=postgresql://me@127.0.0.1/scratch python tests/faults/databases.py [--minutes 10]

The database must have pgvector and no schema steelyard. A piece of work has eight writers and eight readers for 30
seconds. Clients are killed at random moments, and once the server is: a connection of it by SIGKILL, after which
PostgreSQL ends all others and recovers. What a writer was told is kept has to be there, every reader has to see
whole transactions alone, and no copy of the database may be left, though most of the clients had no time to
remove theirs.
"""

import math
import multiprocessing
import os
import signal
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import campaign
import numpy as np
import psycopg

from steelyard import Entry, SteelyardError
from steelyard.extensions.postgres import PostgresVault

CLIENTS, SECONDS = 8, 30.0


def connect():
    return psycopg.connect(os.environ["STEELYARD_POSTGRES"], autocommit=True)


def write(number, acks, faults):
    """Entries 1, 2, 3 ... of its own, each with the number of the last one in the same transaction."""
    while True:
        with noted(faults), PostgresVault(os.environ["STEELYARD_POSTGRES"]) as store:
            last = next((int(entry.importance) for entry in store.get([f"last-{number}"])), 0)
            while True:
                last += 1
                with store.transaction():
                    store.upsert([Entry(f"w{number}-{last}", text=f"number {last}", project=f"w{number}")])
                    store.upsert([Entry(f"last-{number}", importance=float(last))])
                with Path(acks).open("ab", buffering=0) as stream:
                    stream.write(f"{number} {last}\n".encode())


def read(faults):
    """One state after the other, each of whole transactions."""
    while True:
        with noted(faults), PostgresVault(os.environ["STEELYARD_POSTGRES"]) as store:
            while True:
                store.refresh()
                with store.snapshot():
                    whole(store)


def whole(store):
    """The last number of every writer, if the store holds its entries 1 to that one."""
    found = {}
    for number in range(CLIENTS):
        last = next((int(entry.importance) for entry in store.get([f"last-{number}"])), 0)
        ids = [f"w{number}-{at}" for at in range(1, last + 2)]
        texts = [entry.text for entry in store.get(ids)]
        if texts != [f"number {at}" for at in range(1, last + 1)]:
            raise AssertionError(f"writer {number}: {len(texts)} entries, the last one is {last}")
        found[number] = last
    return found


@contextmanager
def noted(faults):
    """An error on purpose, as of a server that is gone, is one message and a pause; any other is a fault."""
    try:
        yield
    except SteelyardError:
        time.sleep(0.2)
    except BaseException as error:
        with Path(faults).open("ab", buffering=0) as stream:
            stream.write(f"{type(error).__name__}: {error}\n".encode())
        raise


def clients(rng):
    """Kill and replace them until the time is over; then look at what there is."""
    with PostgresVault(os.environ["STEELYARD_POSTGRES"], create=True):
        pass
    context, killed = multiprocessing.get_context("fork"), 0
    with TemporaryDirectory() as folder:
        acks, faults = f"{folder}/acks", f"{folder}/faults"
        jobs = [(write, (number, acks, faults)) for number in range(CLIENTS)] + [(read, (faults,))] * CLIENTS
        running = [context.Process(target=work, args=words, daemon=True) for work, words in jobs]
        for process in running:
            process.start()
        end, crash = time.monotonic() + SECONDS, time.monotonic() + rng.uniform(5, SECONDS - 10)
        try:
            while time.monotonic() < end:
                time.sleep(rng.uniform(0.2, 1.5))
                at = int(rng.integers(len(running)))
                running[at].kill()
                running[at].join()
                killed += 1
                running[at] = context.Process(target=jobs[at][0], args=jobs[at][1], daemon=True)
                running[at].start()
                if time.monotonic() > crash:
                    crash = math.inf
                    crash_server()
        finally:
            for process in running:
                process.kill()
                process.join()
        if Path(faults).exists():
            raise AssertionError(Path(faults).read_text()[:500])
        with PostgresVault(os.environ["STEELYARD_POSTGRES"]) as store:
            kept = whole(store)
        told = [tuple(map(int, line.split())) for line in Path(acks).read_text().splitlines()]
        lost = [(number, last) for number, last in told if kept[number] < last]
        if lost:
            raise AssertionError(f"{len(lost)} of {len(told)} were told and are lost: {lost[:5]}")
    return {"writes kept": len(told), "clients killed": killed, "servers killed": int(crash > end)}


def crash_server():
    """SIGKILL one connection: the server ends all of them and recovers from its log."""
    with connect() as admin:
        [(pid,)] = admin.execute("SELECT pid FROM pg_stat_activity WHERE pid = pg_backend_pid()").fetchall()
        os.kill(pid, signal.SIGKILL)
    time.sleep(1.0)


def dropped():
    """Whether the server let us drop what there is."""
    with suppress(psycopg.OperationalError), connect() as admin:
        admin.execute("DROP SCHEMA IF EXISTS steelyard CASCADE")
        return True
    return False


def work(number):
    dropped()
    try:
        with TemporaryDirectory() as cache:
            os.environ["STEELYARD_CACHE"] = cache
            done = clients(np.random.default_rng(number))
            if left := list(Path(cache).glob(".postgres*")):
                raise AssertionError(f"{len(left)} copies are left")
            return done
    finally:
        for _ in range(20):  # the server may be recovering
            if dropped():
                break
            time.sleep(0.5)


if __name__ == "__main__":
    campaign.main("databases", __doc__, 20, work)
