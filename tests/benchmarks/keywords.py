"""Live keyword search: Searcher.search and its retriever beside SQL on the same FTS5 index, and bm25s."""

import tempfile
from pathlib import Path

import apsw
import synthetic
from timing import Race, once, peer, race, recall, same_scores

from steelyard import Query, Searcher, Vault, find_system
from steelyard.live.sources import RetrieverPool
from steelyard.memory.query import clean_query
from steelyard.memory.text import content, terms
from steelyard.stores.sqlite.keywords import OFTEN
from steelyard.stores.sqlite.schema import tokenizing

bm25s = peer("bm25s")
tantivy = peer("tantivy")

LIMIT = 10
SQL = "FTS5, SQL of the same query"
K1, B = 1.2, 0.75
DOCUMENT = {("echovault", 10_000): ("EchoVault's document: less than 10 ms for most queries", 10.0)}


def races(quick, queries):
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
                made += [fts(vault, path, name, asked, rounds) for name in ("fts", "echovault", "soleri")]
                made.append(bm25(vault, memory, asked, rounds))
    return made


def fts(vault, path, name, asked, rounds):
    """One system of FTS5 alone: the raw SQL gives rowids and scores, nothing else."""
    system = find_system(name)
    _, seconds = once(lambda: vault.ensure_index(system.reading.index))
    config = system.config(LIMIT)
    searcher, sources = Searcher(vault, config), RetrieverPool(vault, system, config, None)
    depth, table = config.depths["fts"], f"fts_{system.reading.index.name}"
    raw = tokenizing(apsw.Connection(str(path)))
    weights = [system.searching.field_weights.get(field, 1.0) for field in system.reading.index.fields]
    rank = f"bm25({', '.join([table, *map(str, weights)])})"
    sql = f"SELECT rowid, {rank} AS score FROM {table} WHERE {table} MATCH ? ORDER BY score LIMIT {depth}"
    contenders = {
        "steelyard: retriever alone": lambda query: sources.retrieve("fts", query, depth, {}),
        SQL: lambda query: raw.execute(sql, (system.reading.match(query.text),)).fetchall(),
    }
    for query in (asked * OFTEN)[: max(OFTEN, len(asked))]:  # as in a program that has searched a while
        contenders["steelyard: retriever alone"](query)
    for query in asked:
        ours = [found.score for found in contenders["steelyard: retriever alone"](query)]
        same_scores(name, ours, [-score for _, score in contenders[SQL](query)], 1e-12)
        if name != "soleri":  # which ranks by more than keywords
            same_scores(name, ours[:LIMIT], [hit.score for hit in searcher.search(query).hits], 1e-12)
    if name != "soleri":
        contenders = {"steelyard: Searcher.search": searcher.search, **contenders}
    document = DOCUMENT.get((name, vault.count()))
    shares = recall({n: lambda q, n=n: numbers(n, contenders[n](q)) for n in contenders}, asked)
    taken = race(contenders, asked, rounds)
    raw.close()
    notes = (f"index built in {seconds:.1f} s",)
    return Race("keywords", f"{name}, {vault.count():,} entries", taken, True, document, notes, shares)


def bm25(vault, memory, asked, rounds):
    """BM25 in memory; bm25s gets the same terms, and finds the same list up to single precision."""
    system = find_system("bm25")
    config = system.config(LIMIT)
    searcher, sources = Searcher(vault, config), RetrieverPool(vault, system, config, None)
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
    if tantivy is not None:
        theirs, seconds = once(lambda: tantivy_index(vault))
        notes.append(f"tantivy in {seconds:.1f} s (its own stemmer and stop words, so that its lists are others)")
        contenders["tantivy, ids fetched"] = lambda query: tantivy_search(theirs, query, depth)
    shares = recall({n: lambda q, n=n: numbers(n, contenders[n](q)) for n in contenders}, asked)
    taken = race(contenders, asked, rounds)
    return Race("keywords", f"bm25, {vault.count():,} entries", taken, True, notes=tuple(notes), recall=shares)


def numbers(name, result):
    if name == SQL:
        return [rowid - 1 for rowid, _ in result]
    if name.startswith("bm25s"):
        return result.documents[0].tolist()
    if name.startswith("tantivy"):
        return result
    return [int((one.entry if "Searcher" in name else one).id[1:]) for one in getattr(result, "hits", result)]


def tantivy_index(vault):
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("text", tokenizer_name="en_stem", index_option="freq")
    schema.add_integer_field("number", stored=True, fast=True)
    index = tantivy.Index(schema.build())
    writer = index.writer(heap_size=200_000_000, num_threads=1)
    for entry in vault.entries():
        writer.add_document(tantivy.Document(text=content(entry), number=int(entry.id[1:])))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index, index.searcher()


def tantivy_search(theirs, query, depth):
    index, searcher = theirs
    asked = index.parse_query(" ".join(terms(clean_query(query.text))), ["text"])
    return [searcher.doc(at)["number"][0] for _, at in searcher.search(asked, depth, count=False).hits]


def index(vault, backend):
    """A bm25s index of the same terms; its variant lucene leaves out the factor k1 + 1."""
    made = bm25s.BM25(method="lucene", k1=K1, b=B, backend=backend)
    made.index([terms(content(entry)) for entry in vault.entries()], show_progress=False)
    return made
