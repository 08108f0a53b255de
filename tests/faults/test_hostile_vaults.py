"""Vaults made by somebody who means harm: valid SQLite files in which nothing is what it should be.

The first two are attacks that succeeded: they deleted another vault's entries and wrote a file where they liked.
Then what can be wrong with a vault, and hostile words in it and asked of it.
"""

import itertools

import numpy as np
import pytest
from small import ATTACKS, loosened, one_message, steelyard
from tests.unit.shared import beside, tabled, vault_with

from steelyard import Entry, Searcher, Vault, find_system
from steelyard.base.errors import VaultError
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import Space
from steelyard.stores.sqlite import guard
from steelyard.systems import SYSTEMS, analyses, keyword_indexes

SPACE = Space("lsa", "text", "{text}")
INDEX = next(iter(keyword_indexes(SYSTEMS.values())))
DATA = beside(__file__, "hostile_vaults.json")
"""Statements of somebody with another program: what each makes of a sound vault."""


@pytest.fixture
def path(tmp_path):
    return make(tmp_path / "stranger.db")


def make(path):
    with vault_with(Entry("a", text="token", created_at=1.0), Entry("b", text="other token"), path=path) as vault:
        for index in keyword_indexes(SYSTEMS.values()):
            vault.ensure_index(index)
        vault.put_vectors(SPACE, ["a"], np.ones((1, 4), dtype=np.float32))
    return path


def tamper(path, *statements):
    for sql in statements:
        with loosened(path) as db:
            db.execute(sql)


class TestSqlOfTheFile:
    def test_a_space_that_is_sql_runs_nowhere(self, path, tmp_path):
        other = make(tmp_path / "mine.db")
        wish = (
            f"1 WHERE embedding MATCH ? AND k = ?) SELECT 'x', 0.5, 1 FROM near; COMMIT; ATTACH '{other}' AS o; "
            f"DELETE FROM o.entries; VACUUM INTO '{tmp_path / 'written'}'; BEGIN; --"
        ).replace("'", "''")
        tamper(
            path,
            "DROP TABLE spaces",
            "CREATE TABLE spaces(space TEXT, model TEXT, layer TEXT, recipe TEXT, dim INTEGER)",
            f"INSERT INTO spaces VALUES('{wish}', 'lsa', 'text', '{{text}}', 4)",
        )
        searched = ["search", path, "token", "--system", "vector"]
        for words in (searched, ["vault", "list", path], ["index", path, "--rebuild"]):
            assert "'spaces' is missing" in one_message(steelyard(*words), 2)
        with Vault(other) as vault:
            assert vault.count() == 2
        assert not (tmp_path / "written").exists()

    def test_an_index_whose_name_is_sql_runs_nowhere(self, path, tmp_path):
        name = f"content_insert; COMMIT; VACUUM INTO '{tmp_path / 'written'}'; BEGIN; --".replace("'", "''")
        tamper(path, f"UPDATE keyword_indexes SET name = '{name}' WHERE name = 'content'")
        assert "vault as Steelyard" in one_message(steelyard("index", path, "--rebuild"), 2)
        assert not (tmp_path / "written").exists()


@pytest.mark.parametrize("foreign", DATA["foreign"])
def test_what_steelyard_does_not_write_is_refused_at_the_door(path, foreign):
    tamper(path, *DATA["foreign"][foreign])
    before = path.read_bytes()

    for words in (["search", path, "token"], ["index", path, "--rebuild"]):
        assert "data set into" in one_message(steelyard(*words), 2)
    assert path.read_bytes() == before


class TestTheConnection:
    @pytest.fixture
    def vault(self, path):
        with Vault(path) as vault:
            yield vault

    @pytest.mark.parametrize("sql", ATTACKS["denied"])
    def test_what_no_statement_of_ours_needs_is_denied(self, vault, sql):
        with pytest.raises(VaultError, match="is damaged"):
            vault._db.run(sql)

    def test_one_statement_a_call(self, vault):
        with pytest.raises(ValueError, match="than one statement"):
            vault._db.run("SELECT 1; DELETE FROM entries")
        assert vault.count() == 2

    @pytest.mark.parametrize(("tables", "tick"), [(6, 0), (3, 40)])
    def test_a_statement_of_many_or_slow_steps_is_broken_off(self, vault, monkeypatch, tables, tick):
        """Its budget goes by the size of the file: 50 million steps and 50 a byte, 60 seconds and one a megabyte.

        The first finds no time gone, and the second 40 seconds at each look at the clock.
        """
        ticks = itertools.count(0, tick)
        monkeypatch.setattr(guard, "monotonic", lambda: float(next(ticks)))
        join = " JOIN ".join(f"json_each('[{','.join('1' * 90)}]') t{at}" for at in range(tables))
        with pytest.raises(VaultError, match="is damaged"):
            vault._db.run(f"SELECT count(*) FROM {join}")

    def test_the_time_between_two_rows_is_the_caller_s(self, vault, monkeypatch):
        """A clock that runs only while nobody is inside SQLite never ends a statement."""
        now = 0.0
        monkeypatch.setattr(guard, "monotonic", lambda: now)
        numbers = f"json_each('[{','.join('1' * 90)}]')"
        for _ in vault._db.each(f"SELECT a.value FROM {numbers} a JOIN {numbers} b JOIN {numbers} c LIMIT 9000"):
            now += 100.0
        assert not vault._db.exhausted


def tamper_types(path, table, statement):
    """Put values into a strict table that its columns refuse."""
    with loosened(path) as db:
        [(rules,)] = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,))
    without = rules.replace(" STRICT", "").replace("NOT NULL", "")
    change = "UPDATE sqlite_schema SET sql = '{}' WHERE name = '{}'"
    looser, strict = (change.format(own.replace("'", "''"), table) for own in (without, rules))
    tamper(path, looser, statement, strict)


@pytest.mark.parametrize("system", SYSTEMS)
def test_an_id_of_bytes_is_no_fault_of_ours(path, system):
    tamper_types(path, "entries", "UPDATE entries SET id = x'ff' WHERE id = 'b'")

    assert steelyard("search", path, "token", "--system", system).exit_code in (0, 2)


READS = {
    "places": lambda vault: list(vault.places()),
    "missing": lambda vault: vault.missing(Space("other", "text", "{text}")),
    "unembedded": lambda vault: vault.unembedded([], EVERYTHING),
    "vectors": lambda vault: vault.vectors(SPACE, EVERYTHING),
    "nearest": lambda vault: vault.nearest(SPACE, np.ones(4, dtype=np.float32), EVERYTHING, 2, filter_first=True),
    "keywords": lambda vault: vault.keyword(INDEX, "token", (1.0,) * len(INDEX.fields), EVERYTHING, 2),
}


@pytest.mark.parametrize("what", READS)
def test_what_gives_ids_refuses_bytes(path, what):
    with Vault(path) as vault:
        vault.put_vectors(SPACE, ["b"], np.ones((1, 4), dtype=np.float32))
    tamper_types(path, "entries", "UPDATE entries SET id = x'ff', uri = x'ff' WHERE id = 'b'")

    with Vault(path) as vault, pytest.raises(VaultError, match="holds bytes where"):
        READS[what](vault)


@tabled
def test_relations_refuse_other_types(path, values, odd):
    tamper_types(path, "edges", f"INSERT INTO edges VALUES({values})")

    with Vault(path) as vault, pytest.raises(VaultError, match=odd):
        vault.edges(["a"])


@pytest.mark.parametrize("system", ["bm25", "moltnet", "soleri"])
@pytest.mark.parametrize("odd", DATA["words"])
def test_stored_words_of_other_types_are_damage(tmp_path, monkeypatch, odd, system):
    monkeypatch.setattr("steelyard.stores.sqlite.words.MIN_TEXTS_TO_STORE", 0)
    path = tmp_path / "stranger.db"
    with vault_with(Entry("a", text="token"), Entry("b", text="other token"), path=path) as vault:
        vault.ensure_words(analyses(SYSTEMS.values(), vault))
    tamper_types(path, *DATA["words"][odd])

    assert steelyard("search", path, "token", "--system", system).exit_code in (0, 2)


def test_a_vector_of_zeros_is_damage(path):
    with Vault(path) as vault:
        vault.put_vectors(SPACE, ["b"], np.ones((1, 4), dtype=np.float32))
    tamper(path, "UPDATE vec_1 SET embedding = zeroblob(16) WHERE rowid = 1")

    with Vault(path) as vault, pytest.raises(VaultError, match="holds NoneType where"):
        READS["nearest"](vault)


BOOKKEEPING = {**DATA["odd values"], "a huge revision": f"UPDATE meta SET value = '{'9' * 5000}'"}


@pytest.mark.parametrize("odd", BOOKKEEPING)
def test_odd_values_end_in_one_message(path, odd):
    tamper(path, BOOKKEEPING[odd])
    for line in DATA["reads"]:
        outcome = steelyard(*(word.format(path=path) for word in line.split()))
        assert outcome.exit_code in (0, 2)
        assert outcome.output.replace("\n", "").isprintable()


HOSTILE = [*ATTACKS["hostile words"], "token " * 200, "x" * 100_000]


def older(version):
    return lambda path: tamper(make(path), f"PRAGMA user_version = {version}")


NO_VAULTS = {
    "a folder": (lambda path: path.mkdir(), "is a folder,"),
    "a short text": (lambda path: path.write_text("hello"), "memory.vault' is not"),
    "a long text": (lambda path: path.write_text("hello " * 10_000), "memory.vault' is not"),
    **{
        f"another program's, {n}": (
            lambda path, n=n: tamper(path, "CREATE TABLE albums(title)", f"PRAGMA user_version = {n}"),
            "SQLite file",
        )
        for n in (0, 1, 57)
    },
    "a newer one": (older(99), r"by a newer Steelyard \(schema 99, this one knows 5\); upgrade Steelyard"),
    "an older one": (older(4), r"by an older Steelyard \(schema 4, this one knows 5\); index .* into a new vault"),
    "one of no version": (older(0), r"by an older Steelyard \(schema 0, .*index the data set into a new vault"),
}


class TestOpening:
    @pytest.fixture
    def place(self, tmp_path):
        return tmp_path / "memory.vault"

    def test_a_missing_file_is_not_made(self, place):
        with pytest.raises(VaultError, match=r"vault at .*memory.vault.*steelyard"):
            Vault(place)
        assert not place.exists()

    @pytest.mark.parametrize("what", NO_VAULTS)
    def test_what_is_no_vault_of_this_version_stays_as_it_is(self, place, what):
        make, reason = NO_VAULTS[what]
        make(place)
        before = place.read_bytes() if place.is_file() else b""
        for create in (False, True):
            with pytest.raises(VaultError, match=reason):
                Vault(place, create=create)
        assert before == (place.read_bytes() if place.is_file() else b"")
        assert [p.name for p in place.parent.iterdir()] == [place.name]

    def test_an_empty_file_is_filled_only_where_a_vault_is_made(self, place):
        place.touch()
        with pytest.raises(VaultError, match="steelyard index DATASET"):
            Vault(place)
        assert place.read_bytes() == b""
        for at in range(3):  # and opens again and again
            with vault_with(Entry(f"e{at}"), path=place) as store:
                assert store.count() == at + 1


def test_vectors_of_unequal_count_write_nothing():
    with vault_with(Entry("a"), Entry("b")) as vault:
        with pytest.raises(ValueError, match="zip"):
            vault.put_vectors(SPACE, ["a", "b"], np.ones((1, 2), dtype=np.float32))
        assert vault.spaces() == []


class TestHostileWords:
    @pytest.fixture
    def store(self):
        with Vault(":memory:") as vault:
            pairs = enumerate(HOSTILE)
            vault.upsert([Entry(f"e{at}", title=text[:50], text=text, tags=(text[:9],)) for at, text in pairs])
            yield vault

    @pytest.mark.parametrize("system", ["fts", "bm25", "echovault", "plain"])
    def test_every_hostile_query_is_answered_and_what_says_nothing_never_fails(self, store, system):
        searcher = Searcher(store, find_system(system).config())
        for text in [*HOSTILE, *ATTACKS["silent words"]]:
            hits = searcher.search(text).hits
            assert len(hits) <= searcher.config.limit
            assert all(np.isfinite(hit.score) for hit in hits)
        assert store.count() == len(HOSTILE)

    def test_hostile_words_are_found_as_words(self, store):
        """The token beside every operator is found by its prefix."""
        hits = Searcher(store, find_system("fts").config(100)).search("token").hits
        assert {h.entry.text for h in hits} == {text for text in HOSTILE if "token" in text}
