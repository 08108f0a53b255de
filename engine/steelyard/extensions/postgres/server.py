"""The connections to the database of a store: a pool that threads share, each made anew when it broke.

Names are written in full and the search path is PostgreSQL's own, so that nothing else in the database stands in.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from steelyard.base.errors import ConfigError, MachineError, VaultError, quote
from steelyard.extensions.postgres.address import SECONDS, check_address
from steelyard.extensions.postgres.schema import TABLES, check_version

if TYPE_CHECKING:
    import psycopg

Connection: TypeAlias = "psycopg.Connection[Any]"
Rows: TypeAlias = "psycopg.Cursor[Any]"
IDLE = 0
"""The status of a connection outside a transaction that is not broken, as libpq counts them."""

SETTINGS = (
    "search_path = pg_catalog",
    "client_encoding = 'UTF8'",
    "statement_timeout = '10min'",
    "lock_timeout = '30s'",
    "idle_in_transaction_session_timeout = '1h'",
)
OLDEST = 150_000
"""The version of the server from which on this is tested."""
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
BEGIN_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED"
LOCK = "SELECT revision FROM steelyard.meta FOR UPDATE"
"""Writers take turns; what is read after it is what the one before has left."""


class Server:
    """A pool of connections: as many as threads have asked at once, kept until `close`.

    Attributes
    ----------
    name : str
        The address, which holds no password.
    vector : str
        The schema of pgvector, quoted.
    pgvector : tuple of int
        The version of pgvector, such as (0, 8, 5).
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
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._settings = list(SETTINGS)
        try:
            if create:
                self._make()
            self._look()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connections that nobody uses, and those in use when they are given back."""
        self.configure(())

    def configure(self, settings: Iterable[str]) -> None:
        """Set these on every connection from now on, as ``name = value``, beside those of all stores."""
        with self._lock:  # who takes or gives back a connection sees both or neither
            self._settings = [*SETTINGS, *settings]
            forgotten, self._idle = self._idle, []
        for connection in forgotten:
            connection.close()

    @contextmanager
    def run_statement(self, statement: str, values: Sequence[object] = ()) -> Iterator[tuple[Connection, Rows]]:
        """A connection for this thread alone that has run a statement, and the rows that it gave.

        The statement is run again by a new connection where an idle one has broken meanwhile: the server was
        started again, or let go of us. MachineError where that breaks, too.
        """
        import psycopg

        with self._told():
            with self._lock:
                settings = self._settings
                idle = self._idle.pop() if self._idle else None  # the one that was used last
            connection = idle or self._connect(settings)
            try:
                try:
                    rows = connection.execute(statement.encode(), values or None)
                except psycopg.OperationalError:
                    if not connection.closed:
                        raise
                    connection = self._connect(settings)
                    rows = connection.execute(statement.encode(), values or None)
                yield connection, rows
            finally:
                with self._lock:
                    kept = connection.info.transaction_status == IDLE and settings is self._settings
                    if kept:
                        self._idle.append(connection)
                if not kept:
                    connection.close()

    @contextmanager
    def transaction(self, write: bool) -> Iterator[Connection]:
        """One transaction: of one state where it reads, alone among writers where it writes.

        MachineError where the connection breaks; what was not committed is not kept, and the next one connects
        again.
        """
        import psycopg

        with self.run_statement(BEGIN_WRITING if write else BEGIN_READING) as (connection, _):
            try:
                if write:
                    connection.execute(LOCK)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise

    def _connect(self, settings: Iterable[str]) -> Connection:
        import psycopg

        connection = psycopg.connect(
            self.name, autocommit=True, connect_timeout=SECONDS, fallback_application_name="steelyard"
        )
        try:
            for setting in settings:
                connection.execute(f"SET {setting}".encode())
            if connection.info.server_version < OLDEST:
                major = connection.info.server_version // 10000
                raise ConfigError(f"{self.name} is PostgreSQL {major}; 15 is the oldest that is supported")
        except BaseException:
            connection.close()
            raise
        return connection

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
            vector, _ = self._extension(run)
            for statement in TABLES:
                run(statement.replace("{vector}", f"{vector}.vector"))

    @contextmanager
    def statements(self) -> Iterator[Any]:
        """Runs statements in one transaction."""
        with self.run_statement("SELECT 1") as (connection, _), connection.transaction():
            yield lambda text: connection.execute(text.encode())

    @staticmethod
    def _extension(run: Any) -> tuple[str, str]:  # noqa: ANN401 -- what runs a statement
        """The schema of pgvector, quoted, and its version."""
        row = run(
            "SELECT quote_ident(nspname), extversion FROM pg_extension e "
            "JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'vector'"
        ).fetchone()
        if row is None:
            raise VaultError("the database has a store but no pgvector; let its administrator reinstall it")
        return str(row[0]), str(row[1])

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
                    f"{self.name}: the schema steelyard has other objects than a store; use another database"
                )
            check_version(self.name, run("SELECT version FROM steelyard.meta").fetchone()[0])
            self.restricted = bool(run("SELECT row_security_active('steelyard.entries')").fetchone()[0])
            self.vector, version = self._extension(run)
            self.pgvector = tuple(int(part) for part in version.split(".") if part.isdecimal())

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What the server says, as an error of ours; without its details, which may hold values of entries."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            said = error.diag.message_primary or str(error)
            reason = quote(" ".join(said.split()), 300)
            if isinstance(error, psycopg.errors.InsufficientPrivilege):
                raise VaultError(
                    f"{self.name}: this role may not do that ({reason}); see docs/postgres.md"
                ) from None
            raise MachineError(
                f"{self.name} cannot be used ({reason}); check that the server is up and that PGPASSWORD or "
                ".pgpass has the password, then run the same command again"
            ) from None
