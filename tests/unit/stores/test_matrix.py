"""Vectors searched in memory are found as sqlite-vec finds them: the same ids and the same float64 bits."""

import os
from concurrent.futures import ThreadPoolExecutor

import apsw
import numpy as np
import pytest
import sqlite_vec
from shared import vault_with

from steelyard import Entry, Filters, Vault
from steelyard.base.errors import ConfigError, VaultError
from steelyard.base.machine import MEMORY, PRECISION, PRECISIONS, budget
from steelyard.extensions.int8 import Codes
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import Space
from steelyard.stores.sqlite.matrix import VectorSegment

SPACE = Space("random", "text", "{text}")
SCOPES = [EVERYTHING, Filters.of({"project": "p0"}), Filters.of({"tags": ["x"]}), Filters.of({"project": "none"})]


@pytest.fixture(params=PRECISIONS)
def pair(tmp_path, monkeypatch, request):
    """The same file twice: with the matrix from its first search on, and without it."""
    monkeypatch.setenv(PRECISION, request.param)
    with Vault(tmp_path / "vault", create=True) as fast, Vault(tmp_path / "vault") as plain:
        fast._searches.update({f"vec_{at}": 2 for at in range(5)})
        plain._matrix = lambda *_: None
        yield fast, plain


def vectors(rng, count, dim):
    """Some drawn twice, so that there are ties, some of which only differ in their last bits; lengths vary."""
    made = rng.normal(size=(count, dim)).astype(np.float32)
    made[count // 2 :] = made[rng.integers(0, count // 2 + 1, count - count // 2)]
    made[::3] *= np.float32(1 + 2**-23)
    return made * rng.choice([1e-3, 0.5, 1, 1, 7], size=(count, 1)).astype(np.float32)


def write(rng, vault, names, dim):
    """A random change: entries, vectors, deletions, a space that is made anew."""
    some = [str(name) for name in rng.choice(names, size=int(rng.integers(1, 12)), replace=False)]
    kind = rng.integers(0, 6)
    if kind == 0:
        vault.delete(some)
    elif kind == 1:
        vault.upsert(Entry(name, project=f"p{rng.integers(0, 9)}") for name in some)
    elif kind == 2 and rng.integers(0, 3) == 0:
        vault.drop_space(SPACE)
    else:
        drawn = [(name, *rng.integers(0, 2, size=2).tolist()) for name in some]
        vault.upsert(Entry(n, text=n, project=f"p{project}", tags=("x",) * tags) for n, project, tags in drawn)
        vault.put_vectors(SPACE, some, vectors(rng, len(some), dim))


@pytest.mark.parametrize("seed", range(4))
def test_random_vaults_give_the_same_bits_with_and_without_the_matrix(pair, seed, monkeypatch):
    fast, plain = pair
    renewed, renew = [], fast._updated
    monkeypatch.setattr(fast, "_updated", lambda *asked: renewed.append(renew(*asked)) or renewed[-1])
    monkeypatch.setattr("steelyard.stores.sqlite.nearest.CHANGES", 15)
    rng = np.random.default_rng(seed)
    dim = int(rng.choice([1, 3, 16, 100]))
    names = [f"e{at:03d}" for at in rng.permutation(300)]
    fast.upsert(Entry(n, text=n, project=f"p{at % 2}", tags=("x",) * (at % 3)) for at, n in enumerate(names))
    fast.put_vectors(SPACE, names, vectors(rng, len(names), dim))
    asked = 0
    for _ in range(12):
        probes = [*vectors(rng, 3, dim), np.zeros(dim, np.float32)]
        if rng.integers(0, 2):
            fast.expect(SPACE, probes)
        for probe in probes:
            for scope in SCOPES:
                depth = int(rng.choice([1, 2, 7, 50, 299, 1000]))
                first, metric = bool(rng.integers(0, 2)), str(rng.choice(["cosine", "l2"]))
                found = fast.nearest(SPACE, probe, scope, depth, first, metric)
                assert found == plain.nearest(SPACE, probe, scope, depth, first, metric)
                asked += len(found)
        some = [*names[::3], "absent"]
        kept = [{id_: row.tolist() for id_, row in vault.vectors_of(SPACE, some).items()} for vault in pair]
        assert kept[0] == kept[1]
        write(rng, [fast, plain][int(rng.integers(0, 2))], names, dim)
    assert asked > 500
    assert 0 < max(len(one.tail) for one in renewed) <= 15


def shapes(rng, dim):
    """float32[5, dim]: bells, heavy tails, one large number among small ones, one number alone, all alike."""
    tails = rng.standard_cauchy(dim)
    spike = np.where(np.arange(dim) == 0, 1000, rng.normal(size=dim))
    return np.array([rng.normal(size=dim), tails, spike, np.eye(dim)[0], np.full(dim, 0.1)], dtype=np.float32)


@pytest.mark.parametrize("kind", [VectorSegment, Codes])
@pytest.mark.parametrize("dim", [1, 2, 7, 384, 1536])
def test_what_sqlite_vec_computes_lies_between_the_bounds(kind, dim):
    rng = np.random.default_rng(dim)
    stored = np.concatenate([scale * shapes(rng, dim) for scale in np.float32([1e-3, 1, 50])])
    segment = kind.of(np.arange(len(stored)), stored)
    db = apsw.Connection(":memory:")
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    for query in [*shapes(rng, dim), *stored[:5]]:
        products = segment.products([query])[0]
        for metric, sql in (("cosine", "vec_distance_cosine"), ("l2", "vec_distance_L2")):
            low, high = segment.bounds(products, query, metric)
            rows = [db.execute(f"SELECT {sql}(?, ?)", (query.tobytes(), row.tobytes())) for row in stored]
            distances = np.array([next(row)[0] for row in rows])
            near = 1 - distances if metric == "cosine" else -np.square(distances)
            assert ((low <= near) & (near <= high)).all()
            assert kind is Codes or metric == "l2" or (high - low).max() < 1e-3


def test_products_of_whole_numbers_are_exact_where_they_are_largest():
    """Of 100,000 numbers, each the largest there is, with a sum next to the largest int32."""
    segment = Codes.of(np.arange(2), np.concatenate([np.ones((1, 100_000)), -np.ones((1, 100_000))]).astype("f4"))
    found = segment.products([np.ones(100_000, np.float32), np.full(100_000, -3, np.float32)])
    most = (2**31 - 1) // (127 * 100_000) * 127 * 100_000
    assert found.tolist() == [[most, -most], [-most, most]]


def test_the_error_of_a_code_is_no_less_than_what_it_lacks():
    """Whole numbers up to 127 are their own codes: what they lack is the rounding of the step alone."""
    rng = np.random.default_rng(0)
    whole = np.concatenate([rng.integers(-127, 128, (200, 7)), np.full((200, 1), 127)], axis=1)
    for rows in (whole, rng.normal(size=(200, 8))):
        codes = Codes.of(np.arange(200), rows.astype(np.float32))
        exact = rows.astype(np.float32).astype(np.float64)
        exact /= np.linalg.norm(exact, axis=1, keepdims=True)
        lacks = np.linalg.norm(exact - codes.steps[:, None].astype(np.float64) * codes.numbers, axis=1)
        assert (codes.errors >= lacks).all()


def test_a_vector_that_is_listed_and_not_there_is_a_damaged_vault(tmp_path, monkeypatch):
    monkeypatch.setenv(PRECISION, "int8")
    with vault_with(Entry("a"), Entry("b"), path=tmp_path / "vault") as vault:
        vault.put_vectors(SPACE, ["a", "b"], np.eye(2, dtype=np.float32))
    db = apsw.Connection(str(tmp_path / "vault"))
    db.execute("DELETE FROM vec_1_rowids WHERE rowid = 1")
    db.close()
    with Vault(tmp_path / "vault") as vault:
        vault._searches["vec_1"] = 2
        with pytest.raises(VaultError, match="damaged"):
            vault.nearest(SPACE, np.ones(2, np.float32), EVERYTHING, 2, True)


def test_where_vectors_hardly_differ_sqlite_vec_searches(pair, monkeypatch):
    fast, plain = pair
    monkeypatch.setattr("steelyard.stores.sqlite.nearest.MANY", 1000)
    names = [f"e{at:03d}" for at in range(300)]
    fast.upsert(Entry(name) for name in names)
    fast.put_vectors(SPACE, names, np.ones((300, 4), np.float32))
    probe = np.array([1, 2, 3, 4], np.float32)
    scanned, scan = [], fast._scanned
    monkeypatch.setattr(fast, "_scanned", lambda asked: scanned.append(asked) or scan(asked))
    assert fast.nearest(SPACE, probe, EVERYTHING, 3, True) == plain.nearest(SPACE, probe, EVERYTHING, 3, True)
    assert bool(scanned) is (os.environ[PRECISION] == "int8")  # float keeps the vectors that it compares


@pytest.mark.parametrize(
    ("first", "alike", "asked"), [(0, 3, [4]), (0, 4, [4, 8]), (0, 8, [4, 8, 16]), (2, 5, [4, 8])]
)
def test_sqlite_vec_is_asked_for_more_only_while_the_last_are_alike(tmp_path, first, alike, asked):
    """The first are nearer; then come those alike, which the third place and the one behind it may both hold."""
    with Vault(tmp_path / "vault", create=True) as vault:
        names = [f"e{at:02d}" for at in range(20)]
        angles = [0.0] * first + [0.1] * (alike - first) + [0.1 + at / 10 for at in range(alike, 20)]
        near = np.array([[1.0, angle] for angle in angles], np.float32)
        vault.upsert(Entry(name) for name in names)
        vault.put_vectors(SPACE, names, near)
        vault._matrix = lambda *_: None
        counts = []
        vault._db.exec_trace = lambda _, sql, values: ("MATCH" in sql and counts.append(values[1])) or True
        found = vault.nearest(SPACE, np.array([1, 0], np.float32), EVERYTHING, 3, True)
        assert [one.id for one in found] == names[:3]
        assert counts == asked


def test_changes_are_read_and_not_the_whole_space(pair, monkeypatch):
    fast, plain = pair
    fast.upsert(Entry(f"e{at}") for at in range(50))
    fast.put_vectors(SPACE, [f"e{at}" for at in range(50)], np.eye(50, dtype=np.float32) + 1)
    probe = np.eye(50, dtype=np.float32)[7]
    assert fast.nearest(SPACE, probe, EVERYTHING, 1, True)[0].id == "e7"
    monkeypatch.setattr(fast, "_all_vectors", lambda *_: pytest.fail("read anew"))
    plain.put_vectors(SPACE, ["e3"], 5 * probe[None])
    plain.delete(["e7"])
    assert [hit.id for hit in fast.nearest(SPACE, probe, EVERYTHING, 2, True)] == ["e3", "e0"]


def test_what_was_never_committed_is_not_kept(pair):
    fast, plain = pair
    fast.upsert([Entry("a"), Entry("b")])
    fast.put_vectors(SPACE, ["a"], np.array([[1, 0]], np.float32))
    probe = np.array([1, 0], np.float32)
    with pytest.raises(RuntimeError), fast.transaction():
        fast.put_vectors(SPACE, ["b"], np.array([[1, 0]], np.float32))
        assert [hit.id for hit in fast.nearest(SPACE, probe, EVERYTHING, 9, True)] == ["a", "b"]
        raise RuntimeError
    plain.put_vectors(SPACE, ["b"], np.array([[0, 1]], np.float32))
    assert [hit.score for hit in fast.nearest(SPACE, probe, EVERYTHING, 9, True)] == [1.0, 0.0]


def test_an_older_snapshot_is_searched_as_it_is(pair):
    fast, plain = pair
    fast.upsert([Entry("a"), Entry("b")])
    fast.put_vectors(SPACE, ["a", "b"], np.eye(2, dtype=np.float32))

    def count():
        return len(fast.nearest(SPACE, np.array([1, 0], np.float32), EVERYTHING, 9, True))

    with fast.snapshot(), ThreadPoolExecutor(1) as other:
        assert count() == 2
        plain.delete(["a"])
        assert (other.submit(count).result(), count()) == (1, 2)
    assert count() == 1


def test_above_the_budget_sqlite_vec_searches(tmp_path, monkeypatch):
    monkeypatch.setenv(MEMORY, "0")
    with vault_with(Entry("a"), path=tmp_path / "vault") as vault:
        vault.put_vectors(SPACE, ["a"], np.array([[1, 0]], np.float32))
        monkeypatch.setattr(vault, "_all_vectors", lambda *_: pytest.fail("loaded"))
        asked = (SPACE, np.array([1, 0], np.float32), EVERYTHING, 9, True)
        assert [len(vault.nearest(*asked)) for _ in range(3)] == [1] * 3
        monkeypatch.setenv(MEMORY, "much")
        with pytest.raises(ConfigError, match=r"STEELYARD_MEMORY is 'much';"):
            vault.nearest(*asked)
    monkeypatch.delenv(MEMORY)
    monkeypatch.delattr(os, "sysconf")  # a machine that does not tell counts as one of 4 GiB
    assert budget() == 2**30
