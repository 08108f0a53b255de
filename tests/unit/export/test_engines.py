"""Search engines load exports: PostgreSQL with pgvector, Qdrant's client as it runs alone, clients of others.

``pytest -s`` prints how many of the first ten entries are ours, on every third query of qrels/workshop at night.
"""

import inspect
import json
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from shared import tabled

import steelyard_eval as sy
from steelyard import Query, find_system, fuse, parse_strategy
from steelyard.finish import order
from steelyard.memory.text import CONTENT, content
from steelyard.stores.base import ScoredId
from steelyard.stores.postings import ANALYSIS
from steelyard.table.join import join
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import workshop
from steelyard_eval.export import TARGETS, export, unsupported
from steelyard_eval.export.base import DATES

from .families import FAMILIES

MODEL, VECTOR = "minilm-int8", "<query vector>"
ENDS = {"bm25": (0.0, 100.0), "vector": (-1.0, 1.0)}  # between which scores lie; tmm reads the lower end alone
MIXED = "weighted_sum(1*rrf(fts, 2*vector, k=20), 0.3*recency(half_life=69h), 0.1*importance)"


def config(strategy, limit=10):
    return find_system("plain").config(limit, MODEL).with_strategy(parse_strategy(strategy))


def parts(strategy, to, limit=10):
    return {name: part for name, part in export(config(strategy, limit), to).to_json().items() if name != "about"}


@pytest.fixture(scope="module")
def memory():
    """The entries with their vectors, and the queries that have no filter with theirs."""
    dataset = load(workshop())
    vectors = dataset.vectors[MODEL, "text"], dataset.query_vectors[MODEL]
    stored, asked = (np.asarray(rows, dtype=np.float32).tolist() for rows in vectors)
    entries = [  # a note tells of windows, and what the dates of an export mean
        replace(one, valid_until=None, **{name: getattr(one, name) or one.created_at for name in DATES})
        for one in dataset.entries
    ]
    queries = [pair for pair in zip(dataset.queries, asked, strict=True) if not pair[0].filters.clauses]
    return list(zip(entries, stored, strict=True)), queries


# PostgreSQL


def moment(seconds):
    return datetime.fromtimestamp(seconds, UTC)


@pytest.fixture(scope="module")
def table(postgres_database, memory):
    """A connection to the exported table, filled."""
    import psycopg

    facts = "1*importance, 1*severity, 1*corrections, 1*recency, 1*recency(since=access)"
    names = ("id", *CONTENT, "importance", "severity", "correction_count")
    rows = [{name: getattr(one, name) for name in names} | {"embedding": vector} for one, vector in memory[0]]
    for row, (entry, _) in zip(rows, memory[0], strict=True):
        row |= {name: str(moment(getattr(entry, name))) for name in DATES}
    names = ", ".join(rows[0])
    with psycopg.connect(postgres_database, autocommit=True, cursor_factory=psycopg.RawCursor) as server:
        server.execute(parts(f"weighted_sum(1*rrf(bm25, vector), {facts})", "pgvector")["schema"])
        filled = f"INSERT INTO entries ({names}) SELECT {names} FROM json_populate_recordset(NULL::entries, $1)"
        server.execute(filled, [json.dumps(rows)])
        yield server
        server.execute("DROP TABLE entries")


def rows(server, strategy, query, vector, limit=10):
    """What the exported statement finds: id -> score, best first."""
    statement = parts(strategy, "pgvector", limit)["search"]
    given = {"text": query.text, "vector": str(vector), "timestamptz": moment(query.asked_at)}
    kinds = dict(re.findall(r"\$([0-9])::([a-z]+)", statement))
    return dict(server.execute(statement, [given[kinds[place]] for place in sorted(kinds)]).fetchall())


@pytest.fixture(scope="module")
def pgvector(table):
    return lambda strategy: lambda *asked: rows(table, strategy, *asked)


@tabled
def test_postgresql_fuses_its_own_lists_as_we_do(strategy, table, memory):
    """What is compared is what the statement makes of the lists that it finds itself."""
    entries = {entry.id: entry for entry, _ in memory[0]}
    names = parse_strategy(strategy).signals & {"fts", "bm25", "vector"}
    for query, vector in memory[1][::40]:
        found = {name: rows(table, name, query, vector, 100).items() for name in names}
        lists = {name: [ScoredId(*pair, at) for at, pair in enumerate(own, 1)] for name, own in found.items()}
        near = dict(table.execute("SELECT id, 1 - (embedding <=> $1) FROM entries", [str(vector)]).fetchall())
        cosine = {"cosine": lambda _, ids, near=near: np.array([near[id_] for id_ in ids])}
        asked = [Query(query.text, id="q")], [query.asked_at]
        one = join(*asked, [lists], cosine, lambda ids, _: [entries[id_] for id_ in ids], ends=[ENDS])
        ranking = order(one, fuse(one, parse_strategy(strategy)))
        ours = {one.entries[one.entry[row]]: score for row, score in zip(ranking.row, ranking.score, strict=True)}
        theirs, best = rows(table, strategy, query, vector), pytest.approx([*ours.values()][:10], rel=1e-9)
        # scores that are equal but for rounding may stand in another order
        assert [*theirs.values()] == best
        assert [ours[id_] for id_ in theirs] == best


def test_psql_makes_the_table_and_the_statement_of_the_file(postgres_database):
    import psycopg

    own = config("rrf(fts, 2*vector)")
    weights = replace(own.retrievers["fts"], field_weights={"order": 3.0, "Text": 1.0, "x" * 63: 0.5})
    text = str(export(replace(own, retrievers={**own.retrievers, "fts": weights}), "pgvector"))
    with psycopg.connect(postgres_database) as server:  # rolled back
        server.execute("CREATE SCHEMA apart; SET search_path = apart, public")
        server.execute(text)
        server.execute("""INSERT INTO entries (id, "order", "Text") VALUES ('x', 'b', 'key'), ('y', 'key', 'b')""")
        found = server.execute(f"EXECUTE search('key''s', '{[1.0] * 384}')").fetchall()
        server.rollback()
    assert [id_ for id_, _ in found] == ["y", "x"]  # the field of weight 3 first


# Qdrant


@pytest.fixture(scope="module")
def qdrant(memory):
    """From a strategy to what its exported query finds in the exported collection, in Qdrant's client.

    Sparse vectors have the words of our own analysis and BM25 (Robertson and Zaragoza, 2009) without idf, which
    the modifier of the collection adds.
    """
    own = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed: make .venv/engines")
    models, client = own.models, own.QdrantClient(":memory:")
    exported = parts("weighted_sum(1*rrf(bm25, vector), 1*importance)", "qdrant")
    made = models.CreateCollection(**exported["collection"])
    client.create_collection("entries", vectors_config=made.vectors, sparse_vectors_config=made.sparse_vectors)
    texts = [content(entry) for entry, _ in memory[0]]
    split = replace(ANALYSIS, languages=("english",))  # as dataset.json says
    words = list(map(split.entry, texts))
    numbers = {word: at for at, word in enumerate({word: 0 for own in words for word in own})}
    mean = np.mean([*map(len, words)])

    def sparse(own, value):
        found = {numbers[word]: value(own.count(word)) for word in own if word in numbers}
        return models.SparseVector(indices=[*found], values=[*found.values()])

    points = []
    for at, ((entry, vector), text) in enumerate(zip(memory[0], words, strict=True)):
        norm = 1.2 * (1 - 0.75 + 0.75 * len(text) / mean)
        keywords = sparse(text, lambda often, norm=norm: often * 2.2 / (often + norm))
        about = {"id": entry.id, "importance": entry.importance}
        point = {"id": str(UUID(int=at)), "vector": {"embedding": vector, "keywords": keywords}, "payload": about}
        points.append(models.PointStruct(**point))
    client.upsert("entries", points)

    def found(strategy, query, vector):
        keywords = sparse(split.query(query.text), float).model_dump()
        values = {VECTOR: vector, str({"text": "<query text>", "model": "qdrant/bm25"}): keywords}
        asked = vars(models.QueryRequest(**filled(parts(strategy, "qdrant")["query"], values)))
        given = {name: asked[name] for name in ("query", "using", "limit", "prefetch")}
        return [point.payload["id"] for point in client.query_points("entries", **given).points]

    yield lambda strategy: lambda *asked: found(strategy, *asked)
    client.close()


@pytest.fixture
def lancedb(memory, tmp_path):
    pytest.importorskip("lancedb", reason="lancedb is not installed")
    rows = [{"id": one.id, "keywords": content(one), "embedding": vector} for one, vector in memory[0]]

    def of(strategy):
        (tmp_path / "own.py").write_text(parts(strategy, "lancedb")["program"])
        own = runpy.run_path(tmp_path / "own.py")
        table = own["fill"](tmp_path / "db", rows)
        return lambda query, vector: [id_ for id_, _ in own["search"](table, query.text, vector)]

    return of


def filled(query, values):
    """An exported query with values in the places of what stands for them."""
    if isinstance(query, list):
        return [filled(part, values) for part in query]
    if isinstance(query, dict) and str(query) not in values:
        return {name: filled(part, values) for name, part in query.items()}
    return values.get(str(query), query)


@pytest.mark.usefixtures("opened_once")
@pytest.mark.parametrize("nth", [9, pytest.param(3, marks=pytest.mark.nightly)])
@tabled
def test_the_first_ten_are_ours(to, strategy, least, nth, request, memory):
    """PostgreSQL has its own words: other parts of compounds, more stop words. Qdrant gets ours."""
    found, search = request.getfixturevalue(to)(strategy), sy.load(workshop()).searcher(strategy)
    shares = []
    for query, vector in memory[1][::nth]:
        ours = {hit.entry.id for hit in search(query.id).result.hits}
        shares.append(len(ours & {*found(query, vector)}) / max(len(ours), 1))
    print(f"{to}, {strategy}: {np.mean(shares):.3f} of our first ten")
    assert np.mean(shares) >= least


# No server of the others runs here: what their makers publish of requests takes ours


@tabled
def test_the_types_of_the_javascript_clients_take_every_document(to, beyond, types, tmp_path):
    """The makers write them from their specifications."""
    folder = Path(sys.prefix) / "types/node_modules"
    if not (folder / ".bin/tsc").exists():
        pytest.skip("typescript and the clients are not installed: make .venv/types")
    (tmp_path / "node_modules").symlink_to(folder)
    lines = []
    taken = (each for each in FAMILIES if each not in beyond and not unsupported(TARGETS[to], config(each)))
    for family in taken:
        for part, body in filled(parts(family, to), {VECTOR: [0.5]}).items():
            for one in body if isinstance(body, list) else [body]:
                lines.append(f"export const part{len(lines)}: {types[part]} = {json.dumps(one)};")
    (tmp_path / "check.ts").write_text("\n".join(lines))
    options = ["--noEmit", "--strict", "--skipLibCheck", "--moduleResolution", "bundler", "--module", "esnext"]
    command = [folder / ".bin/tsc", *options, "check.ts"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout == ""
    assert len(lines) > 9


def test_weaviates_client_takes_the_arguments():
    wanted = "weaviate.collections.queries.hybrid.query.executor"
    of = pytest.importorskip(wanted, reason="weaviate-client is not installed")
    given = parts("weighted_sum(0.3*fts, 0.9*vector, normalize=minmax)", "weaviate")["hybrid"]
    assert inspect.signature(of._HybridQueryExecutor.hybrid).bind(None, **given)


VESPA = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))["vespa"]


def test_pyvespa_writes_that_schema():
    vespa = pytest.importorskip("vespa.package", reason="pyvespa is not installed: make .venv/engines")
    ranked = {"functions": [vespa.Function(*function) for function in VESPA["functions"]]}
    ranked |= {"global_phase": vespa.GlobalPhaseRanking(VESPA["global"], 200), "inputs": VESPA["inputs"]}
    fields = vespa.Document([vespa.Field(**field) for field in VESPA["fields"]])
    profile = vespa.RankProfile("steelyard", VESPA["first"], **ranked)
    made = vespa.Schema("entries", fields, [vespa.FieldSet("default", [*CONTENT])], [profile])
    written = re.sub(r"expression \{\s*(.*?)\s*\}", r"expression: \1", made.schema_to_text)
    # rerank-count may stand before the expression
    document = parts(MIXED, "vespa")
    assert sorted(written.split()) == sorted(document["schema"].split())
    assert document["query"] == VESPA["query"]
