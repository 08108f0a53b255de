"""MoltNet, profile shipped, against the recording of the database function that its document links to.

Equal ts_ranks are common, and PostgreSQL numbers them in no order of its own. The recording tells which it
was, for a row says its rank by 1/(k + rank). So every case has a vault of its own, whose ids sort in that
order, and our rule for ties, by id, falls as the database's did. A rank that ts_rank does not allow cannot
come out this way. Rows of equal ts_rank that were not returned take the places left, those with the least
hope of a good score first: a list that still differs is one that no order explains.
"""

from dataclasses import replace
from functools import cache, lru_cache

import numpy as np
from verdicts import SINGLE, Rule, both, compare, differs, near, recording, same

from steelyard import Entry, Filters, Query, Searcher, Vault, fuse, parse_strategy
from steelyard.base.errors import ConfigError
from steelyard.base.fields import parse_time
from steelyard.embedders.embed import space_of
from steelyard.finish import finish
from steelyard.grammar import number_text
from steelyard.live.search import rank_table
from steelyard.memory.entry import Relation
from steelyard.memory.query import visible_to
from steelyard.retrievers import tsearch
from steelyard.retrievers.tsearch import lexical
from steelyard.stores.base import ScoredId
from steelyard.systems.moltnet import NEWEST, SHIPPED, text
from steelyard.table.join import join

RECENCY = "recency(half_life=68.96756393652842h, since=access)"
STRATEGY = f"weighted_sum({{}}*rrf(vector, fts, k={{}}), {{}}*{RECENCY}, {{}}*importance)"
tsearch.tsvector = cache(tsearch.tsvector)  # every vault has the same texts, in another order


# The recording, and the engine on the same entries


def lookup(vector):
    """The recorded vector of one query."""
    return Rule("fixture", len(vector), lambda _: vector)


SPACE = space_of(lookup([]), "text", SHIPPED.reading.recipe)


class Recording:
    system, version, strategy = SHIPPED, "seed_0007", STRATEGY

    def __init__(self, folder):
        recorded = recording(folder, "moltnet")
        self.now = parse_time(recorded["now"])
        self.entries = {entry["n"]: entry for entry in recorded["entries"]}
        self.relations, self.diaries = recorded["relations"], recorded["scope"]["diaries"]
        self.runs = recorded["runs"][self.version]
        self.queries = [query for query in recorded["queries"] if query["qid"] in self.runs]
        self.vault = lru_cache(maxsize=64)(self._vault)  # each group of cases asks for all of them again
        self.part = cache(lambda order, seen: self.vault(order).seen_by(seen))  # kept, so that it is copied once

    def cases(self):
        """(qid, the query with the engine set up as it was asked)."""
        return ((query["qid"], Case(self, query)) for query in self.queries)

    def order(self, query):
        """First the n of the keyword list: by ts_rank, equal ones so that the rows get the ranks they tell.

        'Entries with null tags fail a required-tags filter', there even an empty list, which its API never
        sends; the vault of such a query is without them.
        """
        entries = {n: e for n, e in self.entries.items() if query["tags"] != [] or e["tags"] is not None}
        if not query["fts_has_ties"]:
            return tuple(sorted(entries))  # and so one vault for all of these
        ts_rank = dict(query["fts"])
        told = {n: round(1 / fts - query["rrf_k"]) for n, _, fts, _ in self.runs[query["qid"]] if fts}
        order = []
        for value in sorted(set(ts_rank.values()), reverse=True):
            group = [n for n in ts_rank if ts_rank[n] == value]
            places = range(len(order) + 1, len(order) + 1 + len(group))
            fixed = {told[n]: n for n in group if told.get(n) in places}
            others = iter(sorted(set(group) - set(fixed.values()), key=lambda n: self.hope(query, n)))
            order += [fixed[place] if place in fixed else next(others) for place in places]
        return (*order, *sorted(entries.keys() - ts_rank.keys()))

    def hope(self, query, n):
        """Whether it was returned all the same, and what it scores without keywords."""
        entry = self.entries[n]
        near = [found for found, _ in query["vec"] or ()][: 2 * query["limit"]]
        rrf = 1 / (query["rrf_k"] + 1 + near.index(n)) if n in near else 0.0
        hours = (self.now - parse_time(entry["last_accessed_at"] or entry["created_at"])) / 3600
        returned = n in {found for found, *_ in self.runs[query["qid"]]}
        weights = np.array([query[name] for name in ("w_relevance", "w_recency", "w_importance")])
        return returned, float(weights @ (rrf, 0.99**hours, entry["importance"] / 10)), n

    def _vault(self, order):
        ids = {n: f"{place:03d}" for place, n in enumerate(order)}
        vault = Vault(":memory:")
        vault.upsert(self.entry(n, ids) for n in order)
        vectors = {ids[n]: self.entries[n]["embedding"] for n in order if self.entries[n]["embedding"]}
        vault.put_vectors(SPACE, list(vectors), np.array(list(vectors.values()), dtype=np.float32))
        return vault

    def entry(self, n, ids):
        entry = self.entries[n]
        diary = self.diaries[entry["diary"]]
        relations = (
            Relation(kind, ids.get(old, "left out"), None, status)
            for new, old, kind, status in self.relations
            if new == n
        )
        return Entry(
            ids[n],
            title=entry["title"] or "",
            text=entry["content"],
            tags=tuple(entry["tags"] or ()),
            type=entry["entry_type"],
            importance=float(entry["importance"]),
            created_at=parse_time(entry["created_at"]),
            last_accessed_at=parse_time(entry["last_accessed_at"]) if entry["last_accessed_at"] else None,
            vault=entry["diary"],
            tenant=diary["team"],
            visibility=diary["visibility"],
            category="suspicious" if entry["injection_risk"] else "",
            relations=tuple(relations),
        )


class Newest(Recording):  # migration 0022, commit 25e711d: vectors up to a distance of 0.6, the best rank scores 1
    system, version = NEWEST, "head_0022"
    strategy = STRATEGY.replace("vector, fts", "{half}*gated(1*vector, least=0.4), {half}*fts")


fixtures = {"shipped": Recording, "newest": Newest}


class Case:
    def __init__(self, recording, recorded):
        self.recorded, self.rows = recorded, recording.runs[recorded["qid"]]
        weights = ("w_relevance", "rrf_k", "w_recency", "w_importance")
        self.system = recording.system
        half = number_text((recorded["rrf_k"] + 1) / 2)
        told = recording.strategy.format(*(number_text(recorded[w]) for w in weights), half=half)
        self.strategy = parse_strategy(told)
        self.order = recording.order(recorded)
        self.place = {n: f"{place:03d}" for place, n in enumerate(self.order)}
        self.vault = recording.vault(self.order)
        self.part = recording.part(self.order, visible(recorded))
        self.words = (recorded["query"] or "").strip()
        self.query = Query(self.words, filters=asked(recorded), asked_at=recording.now)
        self.lookup = lookup(recorded["embedding"]) if recorded["embedding"] else None

    def config(self, limit=None):
        limit = limit or self.recorded["limit"]
        return self.system.config(limit, "fixture").with_strategy(self.strategy)

    def searcher(self, config):
        return Searcher(self.vault, config, self.lookup, visible=visible(self.recorded))

    def keywords(self):
        return sorted(self.recorded["fts"], key=lambda row: (-row[1], self.order.index(row[0])))

    def nearest(self):
        return [(n, 1 - distance) for n, distance in self.recorded["vec"] or ()]

    def listed(self, name):
        """The whole list of one retriever through the system's own wiring: (n, score)."""
        config = replace(self.config(len(self.order)), finish=())
        table = self.searcher(config).candidates(self.query, parse_strategy(name))
        best = np.argsort(table.positions[name]) if name in table.columns else []
        return [(self.n(table, row), float(table.columns[name][row])) for row in best]

    def n(self, table, row):
        return self.order[int(table.entries[table.entry[row]])]


def asked(query):
    filters = {"tags": {"all": query["tags"] or [], "none": query["exclude_tags"] or []}}
    if query["types"] is not None:
        filters["type"] = query["types"]
    if query["exclude_superseded"]:
        filters["superseded"] = False
    if query["exclude_suspicious"]:
        filters["category"] = {"none": ["suspicious"]}
    dates = {"from": query["after"], "before": query["before"]}
    filters["created_at"] = {test: date for test, date in dates.items() if date}
    return Filters.of(filters)


def visible(query):
    """What the caller sees: the union of diaries and teams, and what is public without either."""
    if query["diaries"] is None and query["teams"] is None:
        return visible_to({"visibility": ("public",)})
    return visible_to({"vault": tuple(query["diaries"] or ()), "tenant": tuple(query["teams"] or ())})


def ranked(case, table, ranking, config, used):
    """Vector_rrf, fts_rrf and combined_score of every row, and the order; ties may change places."""
    scores = fuse(table, used)
    lists = (term.expr for term in case.strategy.children[0].terms)
    columns = [reciprocal(table, expr, case.recorded["rrf_k"]) for expr in lists]
    uncut = finish(table, scores, config.finish[:-1]).row
    here = {case.n(table, row): [float(column[row]) for column in (*columns, scores)] for row in uncut}
    shown = [(n, here[n][-1]) for n in (case.n(table, row) for row in ranking.row)]
    rows = [near(dict(enumerate(row)), dict(enumerate(here.get(n, ())))) for n, *row in case.rows]
    expected = [(n, score) for n, *_, score in case.rows]
    beyond = [(n, row[-1]) for n, row in here.items()]  # a row that is tied with another may stand in its place
    return both(compare(expected, shown, floor=1.0, beyond=beyond), *rows)


def reciprocal(table, expr, k):
    """1 / (k + rank) of every row, 0 where the list does not hold it."""
    if not expr.retrievers <= table.columns.keys():
        return np.zeros(len(table))
    return np.nan_to_num(fuse(table, parse_strategy(f"rrf({expr}, k={number_text(k)})")))


def keyword_lists(recorded):
    """Matches and their ts_rank, and how many the scope holds in all; no words, no list."""
    for qid, case in recorded.cases():
        if case.words:
            got, expected = case.listed("fts"), case.keywords()
            head = compare(expected, got[: len(expected)], SINGLE, tie=-1)
            yield qid, both(head, same(case.recorded["fts_total"], len(got)))


def vector_lists(recorded):
    """The nearest entries with 1 - distance, in exact order."""
    for qid, case in recorded.cases():
        if case.lookup:
            expected = case.nearest()
            yield qid, compare(expected, case.listed("vector")[: len(expected)], SINGLE, 1.0, tie=-1)


def fusion_of_recorded_lists(recorded):
    """The lists are the recorded ones; the negation's predicate is the engine's."""
    for qid, case in recorded.cases():
        yield qid, of_recorded_lists(case) if case.recorded["limit"] else without_limit(case)


def of_recorded_lists(case):
    lists = {
        name: [ScoredId(case.place[n], score, place) for place, (n, score) in enumerate(rows, 1)]
        for name, rows in (("fts", case.keywords()), ("vector", case.nearest()))
    }
    score = {"lexical": lexical(case.vault, text) if case.words else lambda _, ids: np.ones(len(ids))}
    table = join([case.query], [case.query.asked_at], [lists], score, case.vault.get)
    config = case.config()
    return ranked(case, *rank_table(table, config, config.strategy)[:2], config, config.strategy)


def end_to_end(recorded):
    """Search from text and vector. Where there is no text, the strategy is asked for what is left of it."""
    for qid, case in recorded.cases():
        if not case.recorded["limit"]:
            yield qid, without_limit(case)
        elif not case.words:
            yield qid, without_words(case)
        else:
            config = case.config()
            found = case.searcher(config).search(case.query)
            yield qid, ranked(case, found.table, found.ranking, config, found.strategy)


def refused(call, said, *asked):
    """Verdict where an error that says so belongs."""
    try:
        call(*asked)
    except ConfigError as error:
        return same(True, said in str(error))
    return differs("an error belongs here, there is none")


def without_limit(case):
    """'limit 0 -> empty'; here a limit below 1 is an error, so that neither gives a row."""
    return both(refused(SHIPPED.config, "must be at least 1", case.recorded["limit"]), same(case.rows, []))


def without_words(case):
    """Search itself refuses such a query."""
    config = case.config()
    searcher = case.searcher(replace(config, finish=config.finish[1:]))
    verdict = refused(searcher.search, "type at least one word", case.query)
    if case.lookup is None:  # 'no text and no embedding': no rows there, an error here: neither gives a row
        return both(verdict, same(case.rows, []))
    left = config.strategy.without({"fts"})
    table = searcher.candidates(case.query, left)
    return both(verdict, ranked(case, *rank_table(table, config := searcher.config, left)[:2], config, left))
