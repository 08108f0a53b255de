"""EchoVault's recording beside the engine on the same memories: what the modules of both profiles share.

`Fixture` holds the recording, a vault with its memories and vectors, and searchers of one profile.
`compare` is the one way two rankings are compared. A group is a generator of (case, (verdict, error)).
"""

import gzip
import json
from pathlib import Path

import numpy as np
from verdicts import EXACT, SINGLE, TIE, same

from steelyard.base.errors import ConfigError, EmbedderError
from steelyard.base.fields import parse_time
from steelyard.embedders.embed import space_of
from steelyard.finish import Cut, finish
from steelyard.fusion import fuse, parse_strategy
from steelyard.live.search import Searcher, rank_table
from steelyard.memory.entry import Entry
from steelyard.memory.query import Filters, Query
from steelyard.stores.base import Found
from steelyard.stores.sqlite import Vault
from steelyard.systems.echovault import DOCUMENTED
from steelyard.table.join import join

HYBRID = "weighted_sum(0.3*fts, 0.7*vector, normalize=max)"


class Lookup:
    """The recorded query vectors by text, as an embedder that can be down or cold, and counts its calls."""

    recipe = None
    model = "fixture"

    def __init__(self, vectors, scale=1.0, down=False, warm=True, dim=None):
        self.vectors, self.scale, self.down, self.loaded, self.dim = vectors, scale, down, warm, dim
        self.calls = 0

    def embed(self, texts, kind="entry"):
        self.calls += 1
        if self.down:
            raise EmbedderError("the provider is down")
        if self.dim:
            return np.ones((len(texts), self.dim), dtype=np.float32)
        return np.array([self.vectors[text] for text in texts], dtype=np.float32) * np.float32(self.scale)

    def warm(self):
        return self.loaded


SPACE = space_of(Lookup({}), "text", DOCUMENTED.reading.recipe)  # both profiles embed the same text


class Fixture:
    """The recording of the version the document describes, and the engine under one profile."""

    def __init__(self, folder: Path, system):
        recorded = json.loads(gzip.decompress((folder / "echovault.json.gz").read_bytes()))
        self.system = system
        self.memories = recorded["memories"]
        self.queries = {query["qid"]: query for query in recorded["queries"]}
        self.recorded = recorded["runs"]["seed_era"]
        self.asked = {query["query"]: query["embedding"] for query in recorded["queries"]}
        self.stored = {key(m["rowid"]): m["embedding"] for m in self.memories if m["embedding"]}
        self.vault = self.filled()

    def filled(self, scale=1.0):
        """A vault with the memories, and their vectors unless the scale is 0."""
        vault = Vault(":memory:")
        vault.ensure_index(self.system.reading.index)
        vault.upsert(map(entry, self.memories))
        if scale:
            matrix = np.array(list(self.stored.values()), dtype=np.float32) * np.float32(scale)
            vault.put_vectors(SPACE, list(self.stored), matrix)
        return vault

    def searcher(self, limit, embedder=None, vault=None, strategy=None):
        config = self.system.config(limit, Lookup.model)
        if strategy:
            config = config.with_strategy(parse_strategy(strategy))
        return Searcher(vault or self.vault, config, embedder, clock=lambda: 0.0)

    def lookup(self, **how):
        return Lookup(self.asked, **how)

    def keyword_runs(self):
        """The runs, with the keyword side that is expected of the profile."""
        return self.runs()

    def runs(self):
        """(qid, limit, our query, recorded run) of every recorded run."""
        for qid, run in self.recorded["runs"].items():
            asked = self.queries[qid]
            yield qid, asked["limit"], Query(asked["query"], filters=scope(asked)), run


# Their words and ours


def key(rowid):
    """Ids that sort as the rowids do, so that ties come out in the recorded order."""
    return f"{rowid:05d}"


def keyed(rows):
    return [(key(rowid), score) for rowid, score in rows]


def entry(memory):
    same = ("title", "why", "impact", "category", "project", "source", "details")
    return Entry(
        key(memory["rowid"]),
        text=memory["what"],
        tags=tuple(memory["tags"]),
        created_at=parse_time(memory["created_at"]),
        updated_at=parse_time(memory["updated_at"]),
        extra={name: memory[name] for name in ("rowid", "file_path", "related_files")},
        **{name: memory[name] or "" for name in same},
    )


def scope(args):
    return Filters.of({name: args[name] for name in ("project", "source") if args.get(name)})


def listed(searcher, query, name):
    """The list of one retriever through the system's own wiring: (id, score), and positions."""
    table = searcher.candidates(query, parse_strategy(name))
    if name not in table.columns:
        return [], []
    at = np.argsort(table.positions[name])
    rows = [(table.entries[table.entry[row]], float(table.columns[name][row])) for row in at]
    return rows, table.positions[name][at].tolist()


def scored(hits, divisor=1.0):
    return [(hit.entry.id, None if hit.score is None else hit.score / divisor) for hit in hits]


def settings(label, args):
    """The semantic mode and whether to fill up with recent rows, of a recorded context call.

    An argument beats the configuration, which the label names: ``config semantic=never``,
    ``config topup_recent=false``. Both keys may stand in one label.
    """
    words = label.split() if label.startswith("config ") else []
    configured = dict(word.split("=", 1) for word in words if "=" in word)
    topup = configured.get("topup_recent", "true").strip(",").lower() != "false"
    mode = args.get("semantic_mode", configured.get("semantic", "auto").strip(","))
    return mode, args.get("topup_recent", topup)


def fused(lists, strategy, limit):
    """What a strategy makes of given lists of (id, score)."""
    found = {
        name: [Found(id_, score, place) for place, (id_, score) in enumerate(rows, 1)]
        for name, rows in lists.items()
    }
    table = join([Query("fused")], [0.0], [found], {}, lambda ids, *_: [Entry(id_) for id_ in ids])
    ranking = finish(table, fuse(table, parse_strategy(strategy)), (Cut(limit),))
    return [(table.entries[table.entry[r]], float(s)) for r, s in zip(ranking.row, ranking.score, strict=True)]


def hybrid(searcher, query):
    """Hybrid search, whose errors reach the caller, as (id, score)."""
    strategy = parse_strategy(HYBRID)
    table, ranking, _ = rank_table(searcher.candidates(query, strategy), searcher.config, strategy)
    return [(table.entries[table.entry[r]], float(s)) for r, s in zip(ranking.row, ranking.score, strict=True)]


def merge(fts, vector, fts_weight=0.3, vec_weight=0.7):
    """The document's merge_results, with the decided guard, uncut."""
    total = {}
    for rows, weight in ((fts, fts_weight), (vector, vec_weight)):
        top = max((score for _, score in rows), default=0.0)
        for id_, score in rows:
            total[id_] = total.get(id_, 0.0) + weight * (score / top if top > 0 else 0.0)
    return sorted(total.items(), key=lambda row: -row[1])


# Comparing


def compare(expected, got, tolerance=EXACT, floor=0.0, show=None, beyond=(), tie=TIE):
    """Verdict and worst error of two lists of (id, score), best first.

    Errors are relative to the expected score, or to `floor` where that is larger. `show` cuts the
    expected list; `beyond` is a deeper one. An id may stand in another place only where its own
    expected score is tied, within `tie`.
    """
    known, expected = dict(expected) | dict(beyond), expected[:show]
    if len(expected) != len(got):
        return f"differs: {len(expected)} rows expected, {len(got)} here", 0.0
    worst = 0.0
    for place, ((id_, score), (here, value)) in enumerate(zip(expected, got, strict=True), 1):
        worst = max(worst, abs(value - score) / (max(abs(score), floor) or 1.0))
        if worst > tolerance:
            return f"differs: place {place} scores {score!r}, here {value!r}", worst
        if here != id_ and abs(known.get(here, np.inf) - score) > tie * max(abs(score), floor):
            return f"differs: place {place} is {id_}, here {here}", worst
    if len({id_ for id_, _ in got}) < len(got):
        return "differs: an id appears twice", worst
    return "", worst


def merged_tolerance(vector):
    """Dividing by a maximum below 1 magnifies what float32 leaves open."""
    top = max((score for _, score in vector), default=1.0)
    return SINGLE / min(1.0, top) if top > 0 else SINGLE


def refused(search):
    """Verdict where the recording holds an error: ours must be an error that names the remedy."""
    try:
        search()
    except ConfigError as error:
        return ("" if "type at least one word" in str(error) else f"differs: {error}"), 0.0
    return "differs: an error is recorded, here there is none", 0.0


def failed(recorded):
    return isinstance(recorded, dict) and "error" in recorded


# Groups of both profiles


def match_expressions(fixture):
    for qid, _, query, run in fixture.keyword_runs():
        yield qid, same(run["match"], fixture.system.reading.match(query.text))


def keyword_lists(fixture):
    """fts_pool (depth 2 x limit) and fts_top40, filters applied."""
    for qid, limit, query, run in fixture.keyword_runs():
        for name, size in (("fts_pool", limit), ("fts_top40", 20)):
            searcher = fixture.searcher(size)
            if failed(run[name]):
                yield f"{qid} {name}", refused(lambda s=searcher, q=query: s.candidates(q, parse_strategy("fts")))
            else:
                rows, _ = listed(searcher, query, "fts")
                yield f"{qid} {name}", compare(keyed(run[name]), rows, beyond=keyed(run["fts_top40"]))


def keyword_totals(fixture):
    for qid, _, query, run in fixture.keyword_runs():
        if run["fts_total"] is not None:
            rows, _ = listed(fixture.searcher(len(fixture.memories)), query, "fts")
            yield qid, same(run["fts_total"], len(rows))


def merge_function(fixture):
    """The recorded direct calls of the merge function; both profiles merge alike."""
    for number, case in enumerate(fixture.recorded["merge_cases"], 1):
        given = case["kw"]
        fts, vector = given.get("fts_weight", 0.3), given.get("vec_weight", 0.7)
        strategy = f"weighted_sum({fts}*fts, {vector}*vector, normalize=max)"
        got = fused({"fts": case["fts"], "vector": case["vec"]}, strategy, given.get("limit", 5))
        yield f"case {number}", compare([tuple(row) for row in case["out"]], got)
