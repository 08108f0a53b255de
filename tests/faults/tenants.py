"""Searches, reads and writes as random tenants of one folder, and looks whether anything crosses between them.

    python tests/faults/tenants.py [--minutes 5] [--goal 210] [--fresh] [--only NUMBER]

A piece of work is a folder with the vaults of several tenants. All have the same ids and URIs, with texts,
abstracts, participants and vectors that name their owner. Then come random checks: layered and direct searches by
hostile scopes and queries, lists, entries by id, counts, changes, all of which may return the owner's marks alone;
and hostile names and URIs, which must be refused or be files of the folder. Every 50th piece uses commands.
"""

import os
import tempfile
from pathlib import Path

import campaign
import numpy as np
import small
from noninterference import Directions

from steelyard import Entry, Filters, Vault
from steelyard.base.errors import ConfigError, DataError
from steelyard.embedders.embed import LAYER_RECIPES, embed_missing, space_of
from steelyard.extensions.cortex_client.client import CortexMem, SearchOptions
from steelyard.extensions.cortex_client.uris import check_uri, vault_of
from steelyard.systems.cortex_mem import DIMENSIONS, DOCUMENTED

CHECKS = 500  # of a piece of work, so that 210 pieces are just over 100,000
BY_COMMAND = 50  # each so many pieces, one goes through the command line
NAMES = ("acme", "acme-1", "acme_1", "a", "acme-acme", "0", "umbrella")
"""Tenants whose names begin, end or hold each other's."""
HOSTILE = (*"ab01-_./\\A\0 ~%:*?'\"\n\u00e4\u2024", "..", "cortex-mem-", ".db", "acme", "../")
QUERIES = ("mark", "marks of acme", "* OR mark", "umbrella mark", "what is the mark", '"mark', "cortex://user/")
OFTEN = (*["searches"] * 3, *["readings"] * 2, "changes", "names", "uris")
SCOPES = ("", "cortex://", "cortex://session/", "cortex://session/../", "%", "_", "/", "cortex://user/../session")


class Marked(Directions):
    """A text's direction is that of its owner's mark; a query's is random, so that every entry is near some."""

    model, recipe = "marked", DOCUMENTED.reading.recipe


MARKED = Marked(None)


def one(rng, choices):
    return choices[int(rng.integers(len(choices)))]


def memory(tenant, at):
    home = f"cortex://{DIMENSIONS[at % 4]}/s{at % 3}/timeline"
    mark = f"mark<{tenant}>"
    if at % 5 == 0:
        return Entry(f"e{at}", uri=home, l0=f"{mark} abstract {at}", l1=f"{mark} overview {at}")
    return Entry(f"e{at}", uri=f"{home}/{at}.md", text=f"{mark} text {at}", participants=(mark,))


def fill(vault, tenant, ids):
    vault.upsert(memory(tenant, at) for at in ids)
    for layer in ("text", *LAYER_RECIPES):
        embed_missing(vault, MARKED, space_of(MARKED, layer, DOCUMENTED.reading.recipe))


def owned(tenant, entries):
    for entry in entries:
        found = {word for word in f"{entry.text} {entry.l0} {entry.l1}".split() if word.startswith("mark<")}
        if found != {f"mark<{tenant}>"}:
            raise AssertionError(f"{tenant} was shown {entry.id} with {sorted(found)}")


def search(rng, tenant, own):
    limit, scope = int(rng.integers(1, 20)), one(rng, SCOPES)
    options = SearchOptions(limit=limit, threshold=-1.0, scope=scope, include_content=True)
    call = one(rng, (own.layered_semantic_search, own.semantic_search))
    for hit in call(one(rng, QUERIES), options):
        if f"mark<{tenant}>" not in hit.content or hit.content.count("mark<") != 1:
            raise AssertionError(f"{tenant} was shown {hit.uri}: {hit.content}")


def read(rng, tenant, vault):
    ids = [f"e{at}" for at in rng.integers(0, 40, size=5)]
    owned(tenant, vault.get(ids))
    owned(tenant, vault.entries(Filters.of({"uri": {"prefix": one(rng, SCOPES) or "c"}})))
    other = one(rng, [name for name in NAMES if name != tenant])
    if vault.count(Filters.of({"participants": {"any": [f"mark<{other}>"]}})):
        raise AssertionError(f"{tenant} counts what {other} takes part in")


def change(rng, tenant, vault):
    ids = [int(at) for at in rng.integers(0, 40, size=3)]
    if rng.random() < 0.3:
        vault.delete([f"e{at}" for at in ids])
    else:
        fill(vault, tenant, ids)


def name(rng, folder):
    """A random name is refused, or its vault is a file of the folder that no other name shares."""
    made = "".join(one(rng, HOSTILE) for _ in range(rng.integers(0, 8)))
    try:
        path = vault_of(folder, made)
    except ConfigError:
        return
    if path.parent != Path(folder) or os.path.normpath(path) != str(path) or made != path.name[11:-3].lower():
        raise AssertionError(f"{made!r} is the file {path}")


def uri(rng):
    """A random URI is refused, or has no part that leaves its folder."""
    made = one(rng, ("cortex://", "cortex:/", "file://", "")) + one(rng, (*DIMENSIONS, "users", ""))
    made += "".join(one(rng, ["/", *HOSTILE]) for _ in range(rng.integers(0, 8)))
    try:
        parts = check_uri(made).removeprefix("cortex://").split("/")
    except DataError:
        return
    if parts[0] not in DIMENSIONS or {".", ".."} & set(parts) or "\\" in made or "\0" in made:
        raise AssertionError(f"{made!r} was accepted")


def work(number):
    """One folder of tenants, and what was asked of it."""
    if number % BY_COMMAND == BY_COMMAND - 1:
        return by_command(number)
    rng = np.random.default_rng([number, 14])
    tenants = [NAMES[at] for at in rng.permutation(len(NAMES))[:3]]
    done = {}
    with tempfile.TemporaryDirectory() as folder:
        vaults = {tenant: Vault(vault_of(folder, tenant), create=True) for tenant in tenants}
        memories = {tenant: CortexMem(vault, MARKED) for tenant, vault in vaults.items()}
        for tenant, vault in vaults.items():
            fill(vault, tenant, range(int(rng.integers(1, 40))))
        for _ in range(CHECKS):
            tenant = one(rng, tenants)
            checks = {
                "searches": lambda tenant=tenant: search(rng, tenant, memories[tenant]),
                "readings": lambda tenant=tenant: read(rng, tenant, vaults[tenant]),
                "changes": lambda tenant=tenant: change(rng, tenant, vaults[tenant]),
                "names": lambda: name(rng, folder),
                "uris": lambda: uri(rng),
            }
            what = one(rng, OFTEN)
            checks[what]()
            done[what] = done.get(what, 0) + 1
        for tenant in tenants:
            memories[tenant].close()
            vaults[tenant].close()
        if {path.name[:11] for path in Path(folder).iterdir()} != {"cortex-mem-"}:
            raise AssertionError(f"{sorted(path.name for path in Path(folder).iterdir())}")
    return {"checks": CHECKS, **done}


def by_command(number):
    """The same through commands with `--tenant`."""
    rng = np.random.default_rng([number, 15])
    tenants = [NAMES[at] for at in rng.permutation(len(NAMES))[:2]]
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "vaults"
        folder.mkdir()
        for tenant in tenants:
            home = Path(top) / tenant / "session" / "s" / "timeline"
            home.mkdir(parents=True)
            (home / ".abstract.md").write_text(f"mark<{tenant}> abstract")
            for at in range(5):
                (home / f"{at}.md").write_text(f"mark<{tenant}> text {at} of what was said")
            run("index", str(Path(top) / tenant), str(folder), "--tenant", tenant)
        for _ in range(4):
            tenant = one(rng, tenants)
            system = one(rng, ("cortex_mem", "fts", "vector"))
            words = ("search", str(folder), one(rng, QUERIES), "--system", system)
            said = run(*words, "--json", "--tenant", tenant)
            others = [other for other in tenants if other != tenant and f"mark<{other}>" in said]
            if others:
                raise AssertionError(f"{tenant} was shown {others}")
            run(*words, "--tenant", one(rng, ("../acme", "..", "a/b", "", "A")), code=2)
            said = run("vault", one(rng, ("list", "context")), str(folder), "--json", "--tenant", tenant)
            if f"mark<{tenant}>" not in said or said.count("mark<") != said.count(f"mark<{tenant}>"):
                raise AssertionError(f"{tenant} was shown {said}")
    return {"checks": 12, "checks by command line": 12}


def run(*words, code=0):
    outcome = small.steelyard(*words)
    assert outcome.exit_code == code, f"{words} ended with {outcome.exit_code}: {outcome.output[-300:]}"
    return outcome.output


if __name__ == "__main__":
    campaign.main("tenants", __doc__, 210, work)
