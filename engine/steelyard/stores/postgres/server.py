"""The connection to the database of a store: opened, made anew when it broke, used by one thread at a time.

Names are written in full and the search path is PostgreSQL's own, so that nothing else in the database stands in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from steelyard.base.errors import ConfigError, MachineError, VaultError, shown
from steelyard.stores.postgres.address import SECONDS, check_address
from steelyard.stores.postgres.schema import TABLES, check_version

if TYPE_CHECKING:
    import psycopg

Connection: TypeAlias = "psycopg.Connection[Any]"

SETTINGS = (
    "search_path = pg_catalog",
    "client_encoding = 'UTF8'",
    "statement_timeout = '10min'",
    "lock_timeout = '30s'",
    "idle_in_transaction_session_timeout = '1h'",
)
OLDEST = 150_000
"""The version of the server from which on this is tested."""
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
LOCK = "SELECT revision FROM steelyard.meta FOR UPDATE"
"""Writers take turns; what is read after it is what the one before has left."""


class Server:
    """One connection.

    Attributes
    ----------
    name : str
        The address, which holds no password.
    vector : str
        The schema of pgvector, quoted.
    restricted : bool
        Whether rows of others are hidden from this role.

    Raises
    ------
    ConfigError
        For an address that cannot be read or holds a secret, and a database without pgvector.
    VaultError
        Where the database holds no store, one of another version, or one that this role may not read.
    MachineError
        Where the server cannot be reached.
    """

    def __init__(self, address: str, create: bool) -> None:
        check_address(address)
        self.name = address
        with self._told():
            self._connection = self._connect()
            try:
                if create:
                    self._make()
                self._look()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    @contextmanager
    def transaction(self, write: bool) -> Iterator[Connection]:
        """One transaction: of one state where it reads, alone among writers where it writes.

        MachineError where the connection breaks; what was not committed is not kept, and the next one connects
        again.
        """
        import psycopg

        with self._told():
            try:
                self._connection.execute(WRITE if write else READ)
            except psycopg.OperationalError:  # the server was started again, or let go of us
                self._connection.close()
                self._connection = self._connect()
                self._connection.execute(WRITE if write else READ)
            try:
                if write:
                    self._connection.execute(LOCK)
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(psycopg.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def _connect(self) -> Connection:
        import psycopg

        found = psycopg.connect(
            self.name, autocommit=True, connect_timeout=SECONDS, fallback_application_name="steelyard"
        )
        try:
            for setting in SETTINGS:
                found.execute(f"SET {setting}".encode())
            if found.info.server_version < OLDEST:
                major = found.info.server_version // 10000
                raise ConfigError(f"{self.name} is PostgreSQL {major}; 15 is the oldest that is supported")
        except BaseException:
            found.close()
            raise
        return found

    def _make(self) -> None:
        """Make the tables where there are none; who makes them owns them, and nobody else is asked for."""
        with self.statements() as run:
            # One at a time: another process may be making them just now.
            run("SELECT pg_advisory_xact_lock(hashtext('steelyard'))")
            if run("SELECT to_regnamespace('steelyard')").fetchone() != (None,):
                return
            if run("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone() is None:
                raise ConfigError(
                    f"{self.name} has no pgvector; install it on the server, and let its administrator run CREATE "
                    "EXTENSION vector in this database once"
                )
            vector = self._extension(run)
            for statement in TABLES:
                run(statement.replace("{vector}", f"{vector}.vector"))

    @contextmanager
    def statements(self) -> Iterator[Any]:
        """Runs statements in one transaction."""
        with self._connection.transaction():
            yield lambda text: self._connection.execute(text.encode())

    @staticmethod
    def _extension(run: Any) -> str:  # noqa: ANN401 -- what runs a statement
        row = run(
            "SELECT quote_ident(nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
            "WHERE extname = 'vector'"
        ).fetchone()
        if row is None:
            raise VaultError("the database has a store and no pgvector; let its administrator install it again")
        return str(row[0])

    def _look(self) -> None:
        with self.statements() as run:
            if run("SELECT to_regclass('steelyard.meta')").fetchone() == (None,):
                raise VaultError(f"{self.name} holds no store; make one with steelyard index DATASET {self.name}")
            kinds = run(
                "SELECT count(*) FROM pg_class WHERE relnamespace = 'steelyard'::regnamespace AND relkind NOT IN "
                "('r', 'i', 'S', 't')"
            ).fetchone()
            if kinds != (0,):
                raise VaultError(
                    f"{self.name}: the schema steelyard holds more than tables; it is no store of ours"
                )
            check_version(self.name, run("SELECT version FROM steelyard.meta").fetchone()[0])
            self.restricted = bool(run("SELECT row_security_active('steelyard.entries')").fetchone()[0])
            self.vector = self._extension(run)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What the server says, as an error of ours; without its details, which may hold values of entries."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            said = error.diag.message_primary or str(error)
            reason = shown(" ".join(said.split()), 300)
            if isinstance(error, psycopg.errors.InsufficientPrivilege):
                raise VaultError(
                    f"{self.name}: this role may not do that ({reason}); see docs/postgres.md"
                ) from None
            raise MachineError(
                f"{self.name} cannot be used ({reason}); see that the server is up, that PGPASSWORD or .pgpass "
                "has the password, and run the same again: what was not kept is done again"
            ) from None
