"""system-spec-kit and Soleri once more: scores of a data set's queries from its files, without the engine.

It follows the pages (seeds), the fact sheets of the programs, and what docs/spec-kit.md and docs/soleri.md decide.
It classifies no query, and matches texts as they were asked (ENABLE_FUZZY_MATCH=false).
"""

import gzip
import json
import math
import re
import sqlite3
from collections import Counter
from datetime import datetime
from pathlib import Path

import numpy as np
import Stemmer

DAY = 86_400.0
PORTER = Stemmer.Stemmer("porter", 0).stemWord
PAGES = json.loads(Path(__file__).with_name("recomputed.json").read_text("utf-8"))
"""Lists and numbers as the pages and the fact sheets have them."""
STOP, STOP_JS, STOP_SOLERI = PAGES["stop words"].values()
EDGES, DOCUMENTS, PROMISED, WEIGHTS = (PAGES[name] for name in ("edges", "documents", "promised", "weights"))
SEVERITY = {"critical": 1.0, "warning": 0.7, "suggestion": 0.4}


def read(folder, name):
    plain = Path(folder, name)
    with plain.open(encoding="utf-8") if plain.exists() else gzip.open(f"{plain}.gz", "rt", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def seconds(text):
    return None if text is None else datetime.fromisoformat(text).timestamp()


def first(*values):
    """The first that is there."""
    return next((value for value in values if value is not None), None)


def best(scores, most=None):
    """(id, score), best first, ties by id."""
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0].encode()))[:most]


def places(listed):
    return {id_: place for place, (id_, _) in enumerate(listed, 1)}


class Data:
    """A folder with the vectors of its texts."""

    def __init__(self, folder):
        self.entries = {entry["id"]: entry for entry in read(folder, "corpus.jsonl")}
        self.queries = read(folder, "queries.jsonl")
        self.clock = seconds(json.loads(Path(folder, "dataset.json").read_text())["as_of"])
        rows, asked = (
            np.load(Path(folder, f"{name}.minilm.f16.npy")).astype(np.float64) for name in ("corpus", "queries")
        )
        one = {}  # a text has one vector: the first that was recorded for it
        rows = rows[
            [one.setdefault(f"{e['title']}\n{e['text']}", at) for at, e in enumerate(self.entries.values())]
        ]
        self.units = rows / np.maximum(np.linalg.norm(rows, axis=1), 1e-300)[:, None]
        self.asked, self.at = asked, {query["id"]: at for at, query in enumerate(self.queries)}
        for entry in self.entries.values():
            for name in ("created_at", "updated_at", "valid_from", "valid_until", "last_review"):
                entry[name] = seconds(entry.get(name))

    def now(self, query):
        return first(seconds(query.get("asked_at")), self.clock)

    def cosines(self, query):
        """By id, of every entry."""
        own = self.asked[self.at[query["id"]]]
        return dict(zip(self.entries, (self.units @ own / np.linalg.norm(own)).tolist(), strict=True))

    def inside(self, query):
        """The entries of the query's folder."""
        wanted = query.get("filter", {}).items()
        return {id_ for id_, entry in self.entries.items() if all(entry.get(k) == v for k, v in wanted)}


class Keywords:
    """FTS5 over some fields of some entries; larger scores are better."""

    def __init__(self, entries, fields, tokenizer):
        self.db = sqlite3.connect(":memory:")
        names = ", ".join(f'"{name}"' for name in fields)
        self.db.execute(f"CREATE VIRTUAL TABLE words USING fts5({names}, tokenize='{tokenizer}')")
        self.ids = [entry["id"] for entry in entries]
        rows = [(at, *(text(entry, name) for name in fields)) for at, entry in enumerate(entries)]
        self.db.executemany(f"INSERT INTO words(rowid, {names}) VALUES (?{', ?' * len(fields)})", rows)

    def search(self, expression, weights=()):
        if not expression:
            return {}
        ranking = f"bm25(words{''.join(f', {weight}' for weight in weights)})"
        sql = f"SELECT rowid, {ranking} FROM words WHERE words MATCH ?"
        try:
            return {self.ids[at]: -score for at, score in self.db.execute(sql, (expression,))}
        except sqlite3.OperationalError:
            return {}


def text(entry, name):
    value = entry.get(name) or ""
    return " ".join(value) if isinstance(value, list) else value


def bm25(entries, split, least=0):
    """A function from a query's text to the BM25 scores above 0, k1 1.2, b 0.75."""
    counts = {}
    for entry in entries:
        tags = json.dumps(entry.get("tags", []), ensure_ascii=False, separators=(",", ":"))
        words = split(f"{entry['title']} {entry['text']} {tags} {entry.get('uri', '')}")
        if len(words) >= least:
            counts[entry["id"]] = Counter(words)
    sizes = {id_: sum(own.values()) for id_, own in counts.items()}
    mean = max(1.0, sum(sizes.values()) / max(1, len(sizes)))
    found = Counter(word for own in counts.values() for word in own)

    def score(asked):
        scores = dict.fromkeys(counts, 0.0)
        for word in split(asked):
            idf = math.log((len(counts) - found[word] + 0.5) / (found[word] + 0.5) + 1)
            for id_, own in counts.items():
                if tf := own[word]:
                    scores[id_] += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * sizes[id_] / mean))
        return {id_: value for id_, value in scores.items() if value > 0}

    return score


def terms(asked):
    """The page's: letters and digits, underscores separate, 44 stop words, Porter."""
    return [PORTER(word) for word in re.findall(r"[^\W_]{2,}", asked.lower()) if word not in STOP]


ENDS_JS = "ing= ed= ies=i es= s= ment= ness= able= ible= tion=t sion=s ally= ful= less= ive= ize= ise=".split()  # noqa: SIM905 -- as above


def terms_js(asked):
    return [
        stem_js(w) for w in re.sub(r"[^a-z0-9_\s]", " ", asked.lower()).split() if len(w) > 1 and w not in STOP_JS
    ]


def stem_js(word):
    left = word
    for end, instead in (pair.split("=") for pair in ENDS_JS) if len(word) >= 4 else ():
        left = left.removesuffix(end) + instead if left.endswith(end) else left
    return left if len(left) > 1 else word


def pieces(asked):
    plain = re.sub(r"\b(AND|OR|NOT|NEAR)\b", "", asked, flags=re.IGNORECASE)
    return [f'"{piece}"' for piece in re.sub(r'[*^(){}\[\]"]', "", plain).replace(":", " ").split()]


class SpecKit:
    """Three profiles, lists of `limit` from lists of `depth`."""

    FIELDS = ("title", "tags", "uri", "text")

    def __init__(self, data, limit=10, depth=20):
        self.data, self.limit, self.depth = data, limit, depth
        every = list(data.entries.values())
        self.keywords = Keywords(every, self.FIELDS, "unicode61")
        self.documented_words, self.js_words = bm25(every, terms), bm25(every, terms_js, least=10)
        self.near = self.relations()

    def relations(self):
        """By entry, its neighbours with the strongest relation to each, in either direction."""
        near = {id_: {} for id_ in self.data.entries}
        for id_, entry in self.data.entries.items():
            for edge in entry.get("relations", ()):
                strength = EDGES.get(edge["type"], 0.5) * min(max(edge.get("strength", 1.0), 0.0), 1.0)
                for here, there in ((id_, edge["target"]), (edge["target"], id_)):
                    if here in near and there in near and here != there:
                        near[here][there] = max(strength, near[here].get(there, 0.0))
        return near

    def top(self, scores, inside):
        return best({id_: score for id_, score in scores.items() if id_ in inside}, self.depth)

    def graph(self, seeds, inside):
        """Activation 1 at each seed, halved and times its strength along each of two relations; five a node."""
        found = {}
        for seed in seeds:
            reached, front = {seed: 1.0}, {seed: 1.0}
            for _ in range(2):
                further = {}
                for here, activation in front.items():
                    ways = best({there: s for there, s in self.near[here].items() if there in inside}, 5)
                    for there, strength in ways:
                        value = activation * 0.5 * strength
                        if value >= 0.01 and value > max(reached.get(there, 0), further.get(there, 0)):
                            further[there] = value
                front, reached = further, reached | further
            for id_, value in reached.items():
                if id_ != seed:
                    found[id_] = max(value, found.get(id_, 0.0))
        return best(found, self.depth)

    def documented(self, query):
        inside = self.data.inside(query)
        vector = self.top(self.data.cosines(query), inside)
        words = self.top(self.documented_words(query["text"]), inside)
        graph = self.graph(sorted({id_ for own in (vector, words) for id_, _ in own[:5]}), inside)
        scores, lists = Counter(), Counter()
        for weight, listed in ((1, vector), (1, words), (1.5, graph)):
            for id_, place in places(listed).items():
                scores[id_] += weight / (60 + place)
                lists[id_] += 1
        preferred = set(PROMISED.get(query.get("intent"), "").split())
        for id_ in scores:
            entry = self.data.entries[id_]
            types = {entry.get(name) for name in ("memory_type", "document_type", "context_type")}
            scores[id_] *= 1.1 if lists[id_] > 1 else 1
            scores[id_] *= 1.5 if types & preferred else 1
            scores[id_] *= DOCUMENTS.get(entry.get("document_type"), 1.0)
        return best(scores, self.limit)

    def shipped(self, query):
        entries, inside, now = self.data.entries, self.data.inside(query), self.data.now(query)
        cosines, words = self.data.cosines(query), self.keywords.search(" OR ".join(pieces(query["text"])))
        shown = {
            id_ for id_ in inside if entries[id_].get("importance_tier") not in ("constitutional", "deprecated")
        }
        lifted = {id_: cosines[id_] + 0.1 * self.left_of(entries[id_], now) for id_ in shown}
        vector, keyword = self.top(lifted, shown), self.top(words, inside)
        scores = Counter({id_: 1 / (60 + place) for id_, place in places(vector).items()})
        for id_, place in places(keyword).items():
            scores[id_] += 0.8 / (60 + place) + (0.1 if id_ in scores else 0.0)
        listed = [id_ for id_, _ in best(scores, self.limit)]
        rules = {id_: cosines[id_] for id_ in inside if entries[id_].get("importance_tier") == "constitutional"}
        if not rules.keys() & set(listed):
            listed += [id_ for id_, _ in best(rules, 5)]
        known = places(vector).keys() | rules.keys()
        return best(
            self.sorted_again(query, listed, {i: self.similarity(i, known, cosines, words) for i in listed})
        )

    @staticmethod
    def similarity(id_, known, cosines, words):
        return (1 + cosines[id_]) / 2 if id_ in known else words[id_] / 100

    def sorted_again(self, query, listed, similarity):
        recency, important, similar = WEIGHTS[query.get("intent") or "understand"]
        dates = {id_: first(self.data.entries[id_]["created_at"], self.data.now(query)) for id_ in listed}
        oldest, newest = min(dates.values(), default=0), max(dates.values(), default=0)
        return {
            id_: recency * ((dates[id_] - oldest) / (newest - oldest) if newest > oldest else 1.0)
            + important * self.data.entries[id_].get("importance", 5) / 10
            + similar * similarity[id_]
            for id_ in listed
        }

    @staticmethod
    def left_of(entry, now):
        """What is left of an importance: by FSRS since a review, else halved in 90 days since the last update."""
        reviewed = entry.get("review_count") and entry["last_review"] is not None
        since = entry["last_review"] if reviewed else first(entry["updated_at"], entry["created_at"])
        days = 0.0 if since is None else max(0.0, (now - since) / DAY)
        faded = 0.5 ** (days / (entry.get("half_life_days") or 90.0))
        left = (1 + 19 / 81 * days / (entry.get("stability") or 1.0)) ** -0.5 if reviewed else faded
        return entry.get("importance", 5) / 10 * left

    def js(self, query):
        inside = self.data.inside(query)
        plain = re.sub(r"\b(AND|OR|NOT|NEAR)\b", " ", query["text"], flags=re.IGNORECASE)
        quoted = ('"' + p.replace('"', '""') + '"' for p in re.sub(r"[*^(){}\[\]:+-]", " ", plain).split())
        words = Counter()
        for scores in (self.keywords.search(" ".join(quoted)), self.js_words(query["text"])):
            listed = self.top(scores, inside)
            for id_, score in listed:
                words[id_] += 0.5 * score / listed[0][1]
        scores = Counter(
            {id_: 1 / (60 + at) for id_, at in places(self.top(self.data.cosines(query), inside)).items()}
        )
        for id_, place in places(best(words)).items():
            scores[id_] += 1 / (60 + place) + (0.1 if id_ in scores else 0.0)
        return best(scores, self.limit)


def soleri_words(asked):
    found = re.sub(r"[^a-z0-9\s-]", " ", asked.lower()).split()
    return [word for word in found if len(word) > 2 and word not in STOP_SOLERI]


class Soleri:
    """Both profiles, with vectors."""

    FIELDS, WEIGHTS = ("id", "title", "text", "context", "tags"), (5, 10, 3, 1, 2)

    def __init__(self, data, limit=10):
        self.data, self.limit, self.fetched = data, limit, max(3 * limit, 30)
        self.own = {id_: entry for id_, entry in data.entries.items() if entry.get("kind") != "memory"}
        self.keywords = Keywords(list(data.entries.values()), self.FIELDS, "porter unicode61")
        texts = (
            (i, " ".join(text(e, n) for n in ("title", "text", "context", "tags"))) for i, e in self.own.items()
        )
        self.counts = {id_: Counter(soleri_words(own)) for id_, own in texts}

    def valid(self, entry, now):
        begins, ends = entry["valid_from"], entry["valid_until"]
        return (begins is None or begins <= now) and (ends is None or ends > now)

    def documented(self, query):
        found = re.findall(r"[^\W_]{2,}", query["text"].lower())
        expression = " OR ".join([word for word in found if word not in STOP_SOLERI] or found)
        return self.ranked(query, expression, expression, shipped=False)

    def shipped(self, query):
        words = (re.sub(r"[^a-z0-9]", "", w) for w in query["text"].lower().split() if len(w) > 1)
        return self.ranked(query, " OR ".join(filter(None, words)) or query["text"], query["text"], shipped=True)

    def ranked(self, query, expression, for_memories, shipped):
        now, cosines = self.data.now(query), self.data.cosines(query)
        inside = self.data.inside(query)
        fresh = {id_ for id_, entry in self.own.items() if self.valid(entry, now)}
        words = self.keywords.search(expression, self.WEIGHTS)
        fts = best({i: s for i, s in words.items() if i in fresh & inside}, self.fetched)
        open_to = self.own.keys() if shipped else fresh & inside
        vector = best({id_: cosines[id_] for id_ in open_to}, self.fetched)
        candidates = {id_ for id_, _ in (*fts, *vector)}
        semantic = self.tfidf(query["text"], candidates, fresh if shipped else self.own.keys())
        scores = {
            i: 0.25 * semantic[i] + 0.15 * cosines[i] + 0.15 * self.priors(query, self.own[i], now, shipped)
            for i in candidates
        }
        rows = self.keywords.search(for_memories, self.WEIGHTS)
        memories = {i for i in inside - self.own.keys() if self.valid(self.data.entries[i], now)}
        remembered = [(i, 0.5) for i, _ in best({i: rows[i] for i in rows.keys() & memories}, self.fetched)]
        if shipped:  # the guard comes first, then memories, then the limit
            whole = len(scores) < 50 and len(scores) > 2 * self.limit
            listed = [*best(scores, None if whole else self.limit), *remembered]
            return sorted(listed, key=lambda pair: -pair[1])[: self.limit]
        listed = sorted([*best(scores), *remembered], key=lambda pair: -pair[1])
        return listed if len(fts) < 50 and len(listed) > 2 * self.limit else listed[: self.limit]

    def tfidf(self, asked, candidates, known):
        """Cosines of tf * idf, idf = ln((N + 1) / (df + 1)) + 1."""
        found = Counter(word for id_ in known for word in self.counts[id_])
        idf = {word: math.log((len(known) + 1) / (df + 1)) + 1 for word, df in found.items()}
        own = Counter(soleri_words(asked))
        weigh = lambda counts: {w: n / sum(counts.values()) * idf[w] for w, n in counts.items() if w in idf}  # noqa: E731 -- a line
        query = weigh(own)

        def cosine(id_):
            entry = weigh(self.counts[id_])
            lengths = math.hypot(*query.values()) * math.hypot(*entry.values())
            return sum(v * entry.get(w, 0.0) for w, v in query.items()) / lengths if lengths else 0.0

        return {id_: cosine(id_) for id_ in candidates}

    def priors(self, query, entry, now, shipped):
        """Severity, decay, the overlap of tags, and the domain."""
        asked, tags = set(query.get("tags", ())), set(entry.get("tags", ()))
        overlap = len(asked & tags) / len(asked | tags) if asked else 0.0
        domain = bool(query.get("domain")) and query["domain"] == entry.get("domain")
        return SEVERITY.get(entry.get("severity"), 0.4) + self.decay(entry, now, shipped) + overlap + domain

    @staticmethod
    def decay(entry, now, shipped):
        created = None if shipped else entry["created_at"]
        if entry["valid_until"] is not None:
            begins = first(entry["valid_from"], created, now)
            left, zone = entry["valid_until"] - now, 0.25 * (entry["valid_until"] - begins)
            return 0.0 if left <= 0 else 1.0 if zone <= 0 or left > zone else left / zone
        since = now if shipped else first(entry["updated_at"], created, now)
        return math.exp(-math.log(2) * max(0.0, now - since) / (365 * DAY))
