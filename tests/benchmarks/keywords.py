"""Live keyword search: Searcher.search and its retriever beside SQL on the same FTS5 index, and bm25s."""

import tempfile
from pathlib import Path

import apsw
import synthetic
from timing import Race, once, race, same_scores

from steelyard.query import Query, clean_query
from steelyard.search import Searcher
from steelyard.sources import Sources
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard.text import terms

try:
    import bm25s
except ImportError:
    bm25s = None

LIMIT = 10
K1, B = 1.2, 0.75
DOCUMENT = {("echovault", 10_000): ("EchoVault's document: less than 10 ms for most queries", 10.0)}


def races(quick: bool, queries: int) -> list[Race]:
    """The systems fts, echovault and bm25 at 10,000 and 100,000 entries in a vault file."""
    made = []
    for count in (300,) if quick else (10_000, 100_000):
        memory = synthetic.memory(count)
        asked = [Query(text) for text in synthetic.questions(memory, 8 if quick else queries)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "memory.db"
            with Vault(path, create=True) as vault:
                vault.upsert(memory.entries)
                rounds = 1 if quick or count > 10_000 else 3
                made += [fts(vault, path, name, asked, rounds) for name in ("fts", "echovault")]
                made.append(bm25(vault, memory, asked, rounds))
    return made


def fts(vault: Vault, path: Path, name: str, asked: list[Query], rounds: int) -> Race:
    """One system of FTS5 alone: the raw SQL gives rowids and scores, nothing else."""
    system = find_system(name)
    _, seconds = once(lambda: vault.ensure_index(system.reading.index))
    config = system.config(LIMIT)
    searcher, sources = Searcher(vault, config), Sources(vault, system, config, None)
    depth, table = config.depths["fts"], f"fts_{system.reading.index.name}"
    raw = apsw.Connection(str(path))
    sql = f"SELECT rowid, bm25({table}) AS score FROM {table} WHERE {table} MATCH ? ORDER BY score LIMIT {depth}"
    contenders = {
        "steelyard: Searcher.search": searcher.search,
        "steelyard: retriever alone": lambda query: sources.retrieve("fts", query, depth, {}),
        "FTS5, SQL of the same query": lambda query: raw.execute(
            sql, (system.reading.match(query.text),)
        ).fetchall(),
    }
    for query in asked:
        ours = [found.score for found in contenders["steelyard: retriever alone"](query)]
        same_scores(name, ours, [-score for _, score in contenders["FTS5, SQL of the same query"](query)], 1e-12)
        same_scores(name, ours[:LIMIT], [hit.score for hit in searcher.search(query).hits], 1e-12)
    document = DOCUMENT.get((name, vault.count()))
    taken = race(contenders, asked, rounds)
    raw.close()
    return Race(
        "keywords",
        f"{name}, {vault.count():,} entries",
        taken,
        True,
        document,
        (f"index built in {seconds:.1f} s",),
    )


def bm25(vault: Vault, memory: synthetic.Memory, asked: list[Query], rounds: int) -> Race:
    """BM25 in memory; bm25s gets the same terms, and finds the same list up to single precision."""
    system = find_system("bm25")
    config = system.config(LIMIT)
    searcher, sources = Searcher(vault, config), Sources(vault, system, config, None)
    depth = min(config.depths["bm25"], vault.count())
    contenders = {
        "steelyard: Searcher.search": searcher.search,
        "steelyard: retriever alone": lambda query: sources.retrieve("bm25", query, depth, {}),
    }
    _, seconds = once(lambda: contenders["steelyard: retriever alone"](asked[0]))
    notes = [f"our index built in {seconds:.1f} s"]
    for backend in ("numpy", "numba") if bm25s is not None else ():
        theirs, seconds = once(lambda backend=backend: index(vault, backend))
        notes.append(f"bm25s, {backend}, in {seconds:.1f} s")
        contenders[f"bm25s, {backend}"] = lambda query, theirs=theirs: theirs.retrieve(
            [terms(clean_query(query.text))], k=depth, show_progress=False, n_threads=0
        )
        for query in asked:
            ours = [found.score / (K1 + 1) for found in contenders["steelyard: retriever alone"](query)]
            scores = contenders[f"bm25s, {backend}"](query).scores[0]
            same_scores(f"bm25 and bm25s, {query.text}", ours, scores[: len(ours)].tolist(), 1e-5)
    taken = race(contenders, asked, rounds)
    return Race("keywords", f"bm25, {vault.count():,} entries", taken, True, notes=tuple(notes))


def index(vault: Vault, backend: str):
    """A bm25s index of the same terms; its variant lucene leaves out the factor k1 + 1."""
    from steelyard.text import content

    made = bm25s.BM25(method="lucene", k1=K1, b=B, backend=backend)
    made.index([terms(content(entry)) for entry in vault.entries()], show_progress=False)
    return made
