"""A store in PostgreSQL beside a vault: random searches, tenants, and writers and readers that are killed.

    STEELYARD_POSTGRES=postgresql://me@127.0.0.1/scratch python tests/faults/databases.py [--minutes 10]

The database must have pgvector and no schema steelyard; the role makes roles. Of each eleven pieces of work

- five search 1,000 times: random systems, words, filters, changes between; ids and scores are those of a vault;
- five make 1,000 checks of a role that may read one tenant, while the owner changes the others' entries;
- one has eight writers and eight readers for 30 seconds. Clients are killed at random moments, and once the server
  is: a connection of it by SIGKILL, after which PostgreSQL ends all others and recovers. What a writer was told is
  kept has to be there, and every reader has to see whole transactions alone.

After each of them no copy of the database may be left, though most of the clients had no time to remove theirs.
"""

import math
import multiprocessing
import os
import signal
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from steelyard.base.errors import SteelyardError
from steelyard.extensions.postgres import PostgresVault
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING, Filters, Query
from steelyard.stores.base import KeywordIndex, Space
from steelyard.stores.sqlite import Vault
from steelyard.systems import SYSTEMS
from steelyard_eval.datasets import load
from steelyard_eval.recording.workspace import Workspace

STARTER = Path(__file__).resolve().parents[2] / "qrels" / "starter"
CHECKS = 1_000
FILTERS = (EVERYTHING, *map(Filters.of, ({"project": "api"}, {"superseded": False}, {"tags": "auth"})))
TENANTS = ("a", "b", "a b", "A", "'; --", "")
ROLE = "steelyard_campaign_reader"
CLIENTS, SECONDS = 8, 30.0


def connect():
    import psycopg  # of the extra postgres: the run of all tests imports this file, too

    return psycopg.connect(os.environ["STEELYARD_POSTGRES"], autocommit=True)


def server_error():
    import psycopg

    return psycopg.OperationalError


def one(rng, choices):
    return choices[int(rng.integers(len(choices)))]


# Searches


def searches(rng):
    """Both stores take the same changes and answer the same queries."""
    data = load(STARTER)
    with PostgresVault(os.environ["STEELYARD_POSTGRES"], create=True) as store, Vault(":memory:") as vault:
        spaces = [Workspace.open(data, vault=own) for own in (store, vault)]
        pairs = []
        for space in spaces:
            for system in SYSTEMS.values():
                space.index_for([system], system.config().effective.signals | system.config().needs)
        for system in SYSTEMS.values():
            made = (
                Searcher(own, system.config(), spaces[1].embedder, clock=lambda: data.as_of)
                for own in (store, vault)
            )
            pairs.append(tuple(made))
        texts = [query.text for query in data.queries]
        for number in range(CHECKS):
            if number % 100 == 99:
                entry, title = one(rng, data.entries), one(rng, texts)
                for own in (store, vault):
                    own.delete([entry.id])
                    own.upsert([Entry(f"new{number}", title=title, text=entry.text)])
                store.refresh()
            query = Query(one(rng, texts), filters=one(rng, FILTERS))
            here, there = (
                [(hit.entry.id, hit.score) for hit in own.search(query).hits] for own in one(rng, pairs)
            )
            if here != there:
                raise AssertionError(f"{query}: {here} and {there}")
    return {"searches": CHECKS}


# Tenants


def tenants(rng):
    """What a role sees, counts and scores is of its own tenant, whatever happens to others'."""
    address, mine = os.environ["STEELYARD_POSTGRES"], one(rng, TENANTS[:-1])
    index, space = KeywordIndex("sample", ("text",)), Space("model", "text", "{text}")
    with PostgresVault(address, create=True) as owner, connect() as admin:
        admin.execute(f"CREATE ROLE {ROLE} LOGIN")
        admin.execute(f"GRANT USAGE ON SCHEMA steelyard TO {ROLE}")
        admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA steelyard TO {ROLE}")
        admin.execute("INSERT INTO steelyard.access VALUES (%s, 'tenant', %s)", (ROLE, mine))
        scheme, _, rest = address.partition("://")
        try:
            entries = [Entry(f"e{n}", text=f"mark {n % 7}", tenant=TENANTS[n % len(TENANTS)]) for n in range(60)]
            owner.upsert(entries)
            owner.put_vectors(space, [e.id for e in entries], rng.normal(size=(60, 3)).astype(np.float32))
            own = {entry.id for entry in entries if entry.tenant == mine}
            others = [entry.id for entry in entries if entry.tenant != mine]
            with PostgresVault(f"{scheme}://{ROLE}@{rest.rpartition('@')[2]}") as seen:
                looks = (
                    lambda: seen.keyword(index, f"mark OR {one_word}", [1.0], EVERYTHING, 99),
                    lambda: seen.nearest(space, probe, EVERYTHING, 99, True),
                    lambda: sorted(entry.id for entry in seen.entries()),
                    lambda: seen.count(),
                    lambda: [entry.id for entry in seen.get(others)],
                )
                one_word, probe = "7", rng.normal(size=3).astype(np.float32)
                before = [look() for look in looks]
                if set(before[2]) != own or before[4]:
                    raise AssertionError(f"{mine!r} sees {before[2]} and {before[4]}")
                for number in range(CHECKS):
                    if number % 10 == 0:
                        changed = one(rng, others)
                        theirs = one(rng, [tenant for tenant in TENANTS if tenant != mine])
                        owner.upsert([Entry(changed, text=f"mark {number}", tenant=theirs)], keep_vectors=True)
                        seen.refresh()
                    at = int(rng.integers(len(looks)))
                    if (now := looks[at]()) != before[at]:
                        raise AssertionError(f"look {at} of {mine!r}: {before[at]} became {now}")
        finally:
            admin.execute(f"DROP OWNED BY {ROLE}")
            admin.execute(f"DROP ROLE {ROLE}")
    return {"tenant checks": CHECKS}


# Writers and readers


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


def work(number):
    rng = np.random.default_rng(number)
    kind = clients if number % 11 == 10 else (searches, tenants)[number % 11 % 2]
    with suppress(server_error()), connect() as admin:
        admin.execute("DROP SCHEMA IF EXISTS steelyard CASCADE")
    try:
        with TemporaryDirectory() as cache:
            os.environ["STEELYARD_CACHE"] = cache
            done = kind(rng)
            if left := list(Path(cache).glob(".postgres*")):
                raise AssertionError(f"{len(left)} copies are left")
            return done
    finally:
        for _ in range(20):  # the server may be recovering
            with suppress(server_error()), connect() as admin:
                admin.execute("DROP SCHEMA IF EXISTS steelyard CASCADE")
                break
            time.sleep(0.5)


if __name__ == "__main__":
    import campaign

    campaign.main("databases", __doc__, 220, work)
