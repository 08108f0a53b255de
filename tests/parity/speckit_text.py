"""What system-spec-kit makes of texts, in both generations: tokens, terms, intents, expansions."""

from functools import cached_property

from verdicts import EXACT, Rule, both, close, compare, counted, letters, recording, same

from steelyard import Entry, Vault
from steelyard.base.fields import parse_time
from steelyard.embedders.embed import embed_missing, space_of
from steelyard.retrievers.keywords import Bm25Index
from steelyard.stores.postings import ScopedPostings
from steelyard.systems.spec_kit import enhancement, words as tokens

ARCHIVED = "archived"


def ranked(expected, here, tolerance=EXACT):
    """Two lists of (id, score): equal scores in each place; ids where no others share their score."""
    return compare(expected, here, tolerance, 1.0, tie=tolerance, open_end=True)


def numbered(id_):
    """Our id of a memory, so that ties by id are by number."""
    return f"{int(id_):04}"


RULE = Rule("rule", 16, counted(16, letters))


class Fixture:
    """The two generations, and the memories of the second one in a vault."""

    def __init__(self, folder):
        recorded = recording(folder, "speckit")
        self.shipped, self.js = recorded["seed_version"], recorded["js_version"]
        self.now = self.shipped["meta"]["now_ms"] / 1000

    @cached_property
    def entries(self):
        return [memory(record) for record in self.shipped["memories"]]

    @cached_property
    def active(self):
        """What is not archived, as (id, indexed text)."""
        return [entry for entry in self.entries if entry.visibility != ARCHIVED]

    @cached_property
    def vault(self):
        store = Vault(":memory:")
        store.upsert(self.entries)
        embed_missing(store, RULE, space_of(RULE, "text", "{title}\n{text}"))
        return store


fixture = Fixture


def memory(record):
    return Entry(
        id=numbered(record["id"]),
        title=record["title"],
        text=record["content_text"],
        tags=tuple(record["trigger_phrases"]),
        uri=record["file_path"],
        project=record["spec_folder"],
        importance=record["importance_weight"] * 10,
        importance_tier=record["importance_tier"],
        document_type=record["document_type"],
        visibility=ARCHIVED if record["is_archived"] else "",
        created_at=parse_time(record["created_at"]),
        updated_at=parse_time(record["updated_at"]),
        half_life_days=1e12,  # oracles/README.md: "decay half-life set to 1e12 days"
    )


def generations(fixture):
    yield "shipped", fixture.shipped
    yield "js", fixture.js


STEM = {"shipped": tokens.stem_shipped, "js": tokens.stem_js}
TOKENS = {"shipped": tokens.tokens_shipped, "js": tokens.tokens_js}
STOP = {"shipped": tokens.STOP_WORDS_SHIPPED, "js": tokens.STOP_WORDS_JS}
BLANKS = (("   ", " "), (" a  seach\t\u00a0b ", " a search b "), ("\x1fseach", "\x1fseach"))
"""Made, not recorded: the program splits at /\\s+/, which leaves empty words at the ends, and joins by a blank."""
CLASSIFY = {"shipped": tokens.intent_shipped, "js": tokens.intent_js}


def stemmer(fixture):
    for name, recorded in generations(fixture):
        for word, expected in recorded["stemmer"]:
            yield f"{name} {word}", same(expected, STEM[name](word))


def tokenize(fixture):
    for name, recorded in generations(fixture):
        for text, expected in recorded["tokenize"]:
            yield f"{name} {text!r}", same(expected, TOKENS[name](text))


def stop_words(fixture):
    for name, recorded in generations(fixture):
        yield name, same(sorted(recorded["stopwords"]), sorted(STOP[name]))


def sanitized(fixture):
    for text, expected in fixture.shipped["sanitize_fts5"]:
        yield repr(text), same(expected, " ".join(tokens.any_word(text).split(" OR ")))


def bm25(fixture):
    words = [(e.id, tokens.tokens_shipped(tokens.indexed_text(e))) for e in fixture.active]
    yield from searched("shipped", fixture.shipped["bm25"]["runs"], words, tokens.tokens_shipped)
    recorded = fixture.shipped["bm25"]
    yield from statistics("shipped", words, recorded["stats"]["documentCount"], recorded["stats"]["avgDocLength"])
    long = [(e.id, own) for e in fixture.active if len(own := tokens.tokens_js(tokens.indexed_text(e))) >= 10]
    yield from searched("js", fixture.js["bm25"]["runs"], long, tokens.tokens_js)
    recorded = fixture.js["bm25"]["stats"]
    yield from statistics("js", long, recorded["total_documents"], recorded["avg_doc_length"])
    folder = {e.id: e.project for e in fixture.entries}
    for run in fixture.js["bm25"]["scoped"]:
        listed = scores(long, tokens.tokens_js(run["query"]))
        inside = [(id_, score) for id_, score in listed if folder[id_] == run["spec_folder"]]
        verdict = ranked(by_number(run["results"]), inside[: len(run["results"])])
        yield f"js {run['query']!r} in {run['spec_folder']}", verdict
    tiny = [(id_, tokens.tokens_shipped(text)) for id_, text in fixture.shipped["bm25_tiny"]["docs"]]
    for query, expected in fixture.shipped["bm25_tiny"]["runs"]:
        yield f"tiny {query!r}", ranked(expected, scores(tiny, tokens.tokens_shipped(query)))


def statistics(name, words, count, mean):
    yield f"{name} documents", same(count, len(words))
    yield f"{name} mean length", close(mean, sum(len(own) for _, own in words) / len(words))


def searched(name, runs, words, split):
    for run in runs:
        expected = by_number(run["results"])
        yield f"{name} {run['query']!r}", ranked(expected, scores(words, split(run["query"]))[: len(expected)])


def scores(words, asked):
    counted = ScopedPostings.of((id_, (own, ())) for id_, own in words)
    found = Bm25Index(counted, 1.2, 0.75).scores(asked) if words else []
    listed = [(id_, float(score)) for (id_, _), score in zip(words, found, strict=True) if score > 0]
    return sorted(listed, key=lambda pair: (-pair[1], pair[0]))


def by_number(rows):
    return [(numbered(id_), score) for id_, score in rows]


def classified(fixture):
    for name, recorded in generations(fixture):
        for query, expected, confidence, each, *_ in recorded["intent"]["runs"]:
            found = CLASSIFY[name](query)
            scores = close(each | {"confidence": confidence}, {**found.scores, "confidence": found.confidence})
            yield f"{name} {query!r}", both(same(expected, found.name), scores)


def keywords(fixture):
    for intent, words in fixture.shipped["intent"]["keywords"].items():
        yield f"shipped {intent}", same(sorted(words), sorted(tokens.FLAT[intent]))
    for intent, words in fixture.js["intent"]["keywords"].items():
        own = [sorted(tokens.PRIMARY[intent]), sorted(tokens.SECONDARY[intent])]
        yield f"js {intent}", same([sorted(words["primary"]), sorted(words["secondary"])], own)


def fuzzy(fixture):
    recorded = fixture.js["fuzzy"]
    yield "acronyms", same({k: list(v) for k, v in enhancement.ACRONYMS.items()}, recorded["acronyms"])
    yield "typos", same(recorded["typos"], enhancement.TYPOS)
    for query, expected, *_ in recorded["expand"]:
        yield f"expansion of {query!r}", same(expected, enhancement.expand(query))
    for query, expected in (*recorded["typo"], *BLANKS):
        yield f"typos of {query!r}", same(expected, enhancement.correct(query))
    for term, expected in recorded["fuzzy_acronym"]:
        yield f"acronyms like {term!r}", same(expected, enhancement.acronyms_like(term))
