"""Soleri, profile shipped, against the recording of the code that its document describes.

Nothing is left out. Rankings are compared as what they are, orders of a pool. `Pool` says which candidates stand
above the cut of their list, which are tied at it, and what each scores; the recorded ranking and ours both have to
be rankings of that pool, of the same length. So rows of equal score may change places, also at a cut, and a
candidate may stand for another that is tied with it where the candidates are cut.
"""

from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from verdicts import SINGLE, TIE, Rule, both, close, counted, differs, letters, near, recording, same

from steelyard import Entry, Filters, Query, Searcher, Vault, parse_strategy
from steelyard.base.errors import ConfigError
from steelyard.embedders.embed import BATCH, embed_missing, space_of
from steelyard.extensions.adaptive import AdaptiveRule, Feedback, adapt
from steelyard.finish import Cut, Merge
from steelyard.memory.entry import Relation
from steelyard.memory.query import is_blank, valid_at
from steelyard.memory.text import render
from steelyard.retrievers.keywords import Vocabulary
from steelyard.signals.formulas import tags
from steelyard.stores.base import ScoredId, plain_id
from steelyard.stores.federation import Federation, Tier
from steelyard.systems.soleri import FACTORS, NEWEST, SHIPPED, utf16_length
from steelyard.table.join import join

SIGNS = 10


class Fixture:
    version, system = "seed_version", SHIPPED

    def __init__(self, folder):
        recorded = recording(folder, "soleri")
        self.recorded = recorded["seed_version"] | recorded[self.version]  # without what is the same in both
        self.now = recorded["corpus"]["now"]
        self.entries = [entry(at, raw) for at, raw in enumerate(recorded["corpus"]["entries"])]
        self.vault = vault(self.entries)
        self.hybrid = self.with_vectors()
        self.federation = self.federated()

    def with_vectors(self):
        bare = self.recorded["hybrid"]["without_vectors"]
        own = [entry for id_, entry in self.by_id().items() if id_ not in bare]
        store = vault(self.entries)
        matrix = RULE.embed([render(SHIPPED.reading.recipe, entry) for entry in own])
        store.put_vectors(SPACE, [entry.id for entry in own], matrix)
        return store

    def by_id(self):
        return {plain(entry.id): entry for entry in self.entries}

    def federated(self):
        """The vaults that `manager.tiers` of the recording describes."""

        def some(belongs, change=lambda entry: entry):
            return vault(change(entry) for at, entry in enumerate(self.entries) if belongs(at))

        tiers = [
            Tier("agent", some(lambda at: at % 4 == 0)),
            Tier("project", some(lambda at: at % 4 < 2, lambda e: replace(e, text=e.text + " Project copy."))),
            Tier("team", some(lambda at: at % 3 == 0, lambda e: replace(e, severity="critical"))),
            Tier("ext-high", some(lambda at: at % 7 == 0), 0.9),
            Tier("ext-default", some(lambda at: at % 5 == 0)),
        ]
        return Federation(tiers, SHIPPED.federation)

    def brain(self, limit):
        config = self.system.config(limit)
        return replace(config, finish=config.finish[:1])

    def query(self, run):
        asked = run.get("options", {})
        return Query(
            run["query"],
            filters=Filters.of({name: asked[name] for name in ("domain", "type", "severity") if name in asked}),
            tags=tuple(asked.get("tags", ())),
            domain=asked.get("domain", ""),
            asked_at=self.now,
        )


RULE = Rule("rule", 16, counted(16, letters))  # the embedder of the recording
SPACE = space_of(RULE, "text", SHIPPED.reading.recipe)


def key(number, id_):
    """An id that sorts in the recorded order, where ties go by row: so each tier gives the same ten.

    The signs before the id are no characters of a word, so the index holds the same terms.
    """
    return f"{number:0{SIGNS}b}".replace("0", "!").replace("1", "#") + id_


def plain(id_):
    return id_[SIGNS:]


def entry(number, raw):
    same = ("type", "domain", "title", "severity")
    return Entry(
        key(number, raw["id"]),
        text=raw["description"],
        context=raw.get("context", ""),
        tags=tuple(raw["tags"]),
        created_at=raw.get("createdAt"),
        updated_at=raw.get("updatedAt"),
        valid_from=raw.get("validFrom"),
        valid_until=raw.get("validUntil"),
        **{name: raw[name] for name in same},
    )


def vault(entries):
    store = Vault(":memory:")
    store.upsert(entries)
    return store


def named(hit):
    """The recorded id; memories have none there and go by their title."""
    return hit.entry.title if hit.entry.kind == "memory" else plain(hit.entry.id)


def factors(hit):
    """Score and breakdown, under Soleri's names."""
    parts = {name: hit.signals.get(ours, 0.0) for name, ours in FACTORS.items()}
    return {"score": hit.score, "total": hit.score, **parts}


def score(hit):
    return {"score": hit.score}


class Setup:
    """A search whose rankings are compared; `show` says what of a hit."""

    def __init__(self, store, config, embedder=None, show=factors):
        self.depths, self.show = config.depths, show
        whole = {name: replace(settings, depth=None) for name, settings in config.retrievers.items()}
        self.searcher = Searcher(store, config, embedder)
        self.deep = Searcher(store, replace(config, retrievers=whole, finish=()), embedder)

    def compare(self, query, recorded, size=None):
        """Verdict on a recorded ranking of `size` rows, of which the first, or all, are given."""
        if is_blank(query.text):
            return self.refused(query, recorded)
        hits = self.searcher.search(query).hits
        pool, ours = self.pool(query, hits), [(named(hit), self.show(hit)) for hit in hits]
        counted = same(len(recorded) if size is None else size, len(ours))
        return both(counted, pool.verdict(recorded), pool.verdict(ours[: len(recorded)]))

    def refused(self, query, recorded):
        """The engine refuses a blank query, where the recording finds nothing: equal when neither gives a row."""
        try:
            self.searcher.search(query)
        except ConfigError:
            return same(recorded, [])
        return differs("a blank query was searched")

    def pool(self, query, hits):
        """The candidates of the query, from a search that cuts nothing, and the memories beside them."""
        found = self.deep.search(query)
        cuts = [cut(found.table, self.depths[name], name) for name in found.table.positions]
        memories = [hit for hit in hits if hit.entry.kind == "memory"]
        values = {named(hit): self.show(hit) for hit in (*found.hits, *memories)}
        return Pool(values, set(map(named, memories)).union(*(sure for sure, _, _ in cuts)), [c[1:] for c in cuts])


def cut(table, depth, name):
    """Ids above the cut of a list; those tied at it, and how many places are left for them."""
    values, position = table.columns[name], table.positions[name]
    ids = np.array([plain(plain_id(table.entries[at])) for at in table.entry], dtype=object)
    inside = (position > 0) & (position <= depth)
    if not (position > depth).any() or not inside.any():
        return set(ids[inside]), set(), 0
    edge = values[inside].min()
    tied = np.abs(values - edge) <= (SINGLE if name == "vector" else TIE * edge)
    return set(ids[inside & ~tied]), set(ids[tied]), int((inside & tied).sum())


@dataclass
class Pool:
    """What may be ranked: values by id; the ids that are sure; of each list (tied ids, places left for them)."""

    values: dict
    sure: set
    ties: list

    def verdict(self, rows):
        """Whether (id, values) rows are the first of a ranking of this pool, and the worst error."""
        strange = [id_ for id_, _ in rows if id_ not in self.sure.union(*(tied for tied, _ in self.ties))]
        if strange:
            return differs(f"{strange[0]} is no candidate")
        order = self.order([values["score"] for _, values in rows], {id_ for id_, _ in rows})
        return both(*(near(values, self.values[id_]) for id_, values in rows), (order, 0.0))

    def order(self, scores, shown):
        """Whether what is missing may be: it scores too little, or another that is tied with it has its place."""
        if len(shown) < len(scores):
            return "differs: an id appears twice"
        if any(later > earlier + TIE for earlier, later in pairwise(scores)):
            return "differs: the scores are not in order"
        least = scores[-1] + TIE if scores else -np.inf
        low = {id_ for id_, values in self.values.items() if values["score"] <= least}
        if missing := self.sure - shown - low:
            return f"differs: {min(missing)} is missing"
        for tied, places in self.ties:
            if not len((tied & shown) - self.sure) <= places <= len(tied & (shown | self.sure | low)):
                return f"differs: {places} of {sorted(tied)} are candidates, {sorted(tied & shown)} are there"
        return ""


LIMIT = 10
SHOWN = 30  # oracles/README.md: "results = first 30"
FACADE = {"scan": 10, "full": 20}  # systems/soleri.md: "facade default limit: scan 10, full 20"


class Newest(Fixture):  # commit d87b305, with the pass along links
    version, system = "newest", NEWEST


fixtures = {"shipped": Fixture, "newest": Newest}


def best(fixture, strategy, depth):
    config = fixture.system.config(LIMIT).with_strategy(parse_strategy(strategy))
    retrievers = {name: replace(settings, depth=depth) for name, settings in config.retrievers.items()}
    return replace(config, retrievers=retrievers, finish=(Cut(depth),))


def label(number, run):
    return f"{number} {run['query']!r} {run.get('options') or ''}".strip()


def scored(rows):
    return [(id_, {"score": value}) for id_, value in rows]


def ranked(fixture, runs, store, config_of, embedder=None):
    """The cases of recorded rankings; `config_of` gives the configuration for a limit."""
    setup = cache(lambda limit: Setup(store, config_of(limit), embedder))
    for number, run in enumerate(runs):
        rows = [(row["id"], {"score": row["score"], **row["b"]}) for row in run["results"]]
        verdict = setup(run["options"].get("limit", LIMIT)).compare(fixture.query(run), rows, run["n"])
        yield label(number, run), both(same(min(run["n"], SHOWN), len(rows)), verdict)


def tokens(fixture):
    for text, expected in fixture.recorded["functions"]["tokenize"]:
        yield repr(text), same(expected, SHIPPED.reading.words.split(text))


def match_expressions(fixture):
    for text, expected in fixture.recorded["functions"]["buildFtsQuery"]:
        yield repr(text), same(expected, fixture.system.reading.match(text))


def tag_overlap(fixture):
    for asked, held, expected in fixture.recorded["functions"]["jaccard"]:
        found = [{"fts": [ScoredId("a", 1.0, 1)]}]
        entry = Entry("a", tags=tuple(held))
        pair = join([Query("q", tags=tuple(asked))], [0.0], found, {}, lambda *_, own=entry: [own])
        yield f"{asked} and {held}", close(expected, float(tags(pair).values[0]))


def keyword_lists(fixture):
    setup = cache(lambda limit: Setup(fixture.vault, best(fixture, "fts", limit), show=score))
    for number, run in enumerate(fixture.recorded["fts"]):
        verdict = setup(run["limit"]).compare(fixture.query(run), scored(run["results"]))
        yield label(number, run), verdict


def expired_too(fixture):
    """Searched without regard to validity, at a limit of 400: here, in entries without windows."""
    timeless = vault(replace(entry, valid_from=None, valid_until=None) for entry in fixture.entries)
    setup = Setup(timeless, best(fixture, "fts", 400), show=score)
    for number, run in enumerate(fixture.recorded["fts_include_expired"]):
        yield label(number, run), setup.compare(fixture.query(run), scored(run["results"]))


def idf(fixture, store):
    known = Vocabulary(store.counted(SHIPPED.reading.words.analysis, valid_at(fixture.now)))

    def of(word):
        return known.weigh([[word]])[0][0].get(word, 0.0)  # of one word, whose frequency is 1

    return of


def vocabulary(fixture):
    ours = idf(fixture, fixture.vault)
    for term, expected in fixture.recorded["vocabulary"]:
        yield term, close(expected, ours(term))


def rankings(fixture):
    yield from ranked(fixture, fixture.recorded["brain"], fixture.vault, fixture.brain)


def with_timestamps(fixture):
    """The vault was wrapped so that dates reached the ranking: recency as the document has it."""

    def dated(limit):
        dated = str(fixture.system.searching.keywords_only).replace(", since=never", "")
        return replace(fixture.brain(limit), keywords_only=parse_strategy(dated))

    yield from ranked(fixture, fixture.recorded["brain_with_timestamps"], fixture.vault, dated)


def scan(fixture):
    setup = cache(lambda limit: Setup(fixture.vault, fixture.brain(limit), show=scanned))
    for number, run in enumerate(fixture.recorded["scan"]):
        rows = [(row["id"], row) for row in run["results"]]
        yield label(number, run), setup(run["options"].get("limit", LIMIT)).compare(fixture.query(run), rows)


def scanned(hit):
    return SHIPPED.showing.scan(hit) | {"id": plain(hit.entry.id)}


def weights(fixture):
    """Default and adapted. Each mix also holds statistics, which no search reads.

    systems/soleri.md: "Feedback statistics report accepted / all rows ... a different rate than the one used".
    """
    recorded, config = fixture.recorded, fixture.system.config(LIMIT)
    yield "default", close(recorded["weights_default"], weights_of(config.keywords_only))
    yield "hybrid", close(recorded["hybrid"]["weights"], weights_of(config.strategy))
    for mix in recorded["adaptive"]:
        counts = {name: mix[name] for name in ("accepted", "dismissed", "modified", "failed")}
        moved = adapt(config, Feedback(**counts), AdaptiveRule(**fixture.system.adaptive))
        ours = weights_of(moved.strategy if mix["embedding"] else moved.keywords_only)
        case = f"{counts} {'with' if mix['embedding'] else 'without'} vectors"
        yield case, both(close(mix["weights"], ours), close(mix["sum"], sum(ours.values())))


def weights_of(strategy):
    """Under Soleri's names; 0 for the vector signal where there is none."""
    own = {term.expr.name: term.weight for term in strategy.terms}
    return {name: own.get(ours, 0.0) for name, ours in FACTORS.items() if ours != "graph" or ours in own}


def adapted_rankings(fixture):
    recorded = fixture.recorded["brain_adapted"]
    feedback = Feedback(**recorded["feedback"])

    def adapted(limit):
        return adapt(fixture.brain(limit), feedback, AdaptiveRule(**fixture.system.adaptive))

    yield "weights", close(recorded["weights"], weights_of(adapted(LIMIT).keywords_only))
    yield from ranked(fixture, recorded["runs"], fixture.vault, adapted)


def embedding(fixture):
    """The vector of every entry, the batches, and that a second run embeds nothing."""
    recorded, own = fixture.recorded["hybrid"], fixture.by_id()
    for id_, expected in recorded["vectors"]:
        yield id_, same(expected, vector_of(render(SHIPPED.reading.recipe, own[id_])))
    pipeline, store, done = recorded["pipeline"], vault(fixture.entries), []

    def progress(batches):
        total = sum(map(len, batches))
        done.extend([min(at, total), total] for at in range(BATCH, total + BATCH, BATCH))
        return batches

    embedded = embed_missing(store, RULE, SPACE, progress=progress)
    counts = {"embedded": embedded, "skipped": len(own) - embedded, "failed": len(store.missing(SPACE))}
    yield "counts", close({name: pipeline["result"][name] for name in counts}, counts)
    yield "batches", same(pipeline["progress"], done)
    yield "again", same(pipeline["again"], bool(embed_missing(store, RULE, SPACE)))
    # The recorded provider counted characters. systems/soleri.md: "joined with newlines, empty parts skipped";
    # our template leaves the line break before an empty part.
    texts = (render(SHIPPED.reading.recipe, entry).split("\n") for entry in fixture.entries)
    count = sum(utf16_length("\n".join(filter(None, lines))) for lines in texts)
    yield "characters", same(pipeline["result"]["tokensUsed"], count)


def vector_of(text):
    return RULE.embed([text])[0].astype(int).tolist()


def nearest_vectors(fixture):
    runs = fixture.recorded["hybrid"]["cosine"]
    setup = Setup(fixture.hybrid, best(fixture, "weighted_sum(0*vector, 1*cosine)", 30), RULE, score)
    for number, run in enumerate(runs):
        verdict = setup.compare(fixture.query(run), scored(run["top"]))
        yield label(number, run), both(same(run["vector"], vector_of(run["query"])), verdict)


def hybrid_rankings(fixture):
    yield from ranked(fixture, fixture.recorded["hybrid"]["runs"], fixture.hybrid, fixture.brain, RULE)


def federation(fixture):
    recorded, ours = fixture.recorded["manager"], fixture.federation
    for name, expected in (recorded["weights"] | dict(recorded["listConnected"])).items():
        yield f"weight of {name}", same(expected, ours.weights[name])
    entries, read = ours.entries(valid_at(fixture.now)), SHIPPED.reading.words.analysis.read
    words = {word for entry in entries for word in read(entry)[0]}
    yield "vocabulary", same(recorded["vocabulary_size"], sum(map(bool, map(idf(fixture, ours), words))))


def federated_lists(fixture):
    def show(hit):
        return {"score": hit.score, "source": hit.entry.vault}

    setup = cache(lambda limit: Setup(fixture.federation, best(fixture, "fts", limit), show=show))
    for number, run in enumerate(fixture.recorded["manager"]["search"]):
        rows = [(id_, {"score": value, "source": tier}) for id_, value, tier in run["results"]]
        yield label(number, run), setup(run["limit"]).compare(fixture.query(run), rows)


def federated_rankings(fixture):
    yield from ranked(fixture, fixture.recorded["manager"]["brain"], fixture.federation, fixture.brain)


def search_operation(fixture):
    """Entries and memories in one list, cut again; scan shows the snippet of a memory."""
    recorded = fixture.recorded["op"]
    store = vault([*fixture.entries, *map(memory, recorded["memories"])])

    @cache
    def setup(limit, memories):
        config = fixture.system.config(limit)
        stages = tuple(stage for stage in config.finish if memories or not isinstance(stage, Merge))
        return Setup(store, replace(config, finish=stages), show=result)

    for number, run in enumerate(recorded["runs"]):
        names = [row.get("id") or row["title"] for row in run["results"]]
        told = [{key: row[key] for key in row if key not in ("id", "title")} for row in run["results"]]
        rows = list(zip(names, told, strict=True))
        limit = run["limit"] or FACADE[run["mode"]]
        verdict = setup(limit, run["includeMemories"]).compare(fixture.query(run), rows)
        yield f"{number} {run['query']!r} {run['mode']}", verdict


def memory(raw):
    type_, title, text, topics = raw
    return Entry(
        f"memory-{title.replace(' ', '-')}", type=type_, title=title, text=text, tags=tuple(topics), kind="memory"
    )


def result(hit):
    source = "memory" if hit.entry.kind == "memory" else "vault"
    return {"score": hit.score, "source": source, "snippet": SHIPPED.showing.scan(hit)["snippet"]}


def started(graph, starts, query, *_):
    return graph.follow(query, None, {"first": starts})


def linked_rankings(fixture):
    """From where the program starts: its first ranking, here the head of each list. As many as there."""
    number = {plain(entry.id): entry.id for entry in fixture.entries}
    links = {}
    for source, target, kind in fixture.recorded["graph"]["links"]:
        links.setdefault(number.get(source), []).append(Relation(kind, number.get(target, "elsewhere")))
    store = vault(replace(e, relations=tuple(links.get(e.id, ()))) for e in fixture.entries)
    for at, run in enumerate(fixture.recorded["graph"]["runs"]):
        config, query = fixture.system.config(run["options"].get("limit", LIMIT)), fixture.query(run)
        setup = Setup(store, replace(config, finish=(Cut(max(run["n"], 1)),)))
        if not is_blank(query.text):
            first = Searcher(fixture.vault, replace(config, finish=())).search(query).hits[:5]
            starts = [ScoredId(hit.entry.id, 1.0, 1) for hit in first if hit.signals["tfidf"] > 0]
            for own in (setup.searcher._sources, setup.deep._sources):
                follow = partial(started, own._retriever("graph"), starts)
                own._retrievers["graph"] = SimpleNamespace(follow=follow)
        rows = [(row["id"], {"score": row["score"], **row["b"]}) for row in run["results"]]
        yield label(at, run), setup.compare(query, rows, run["n"])
