"""Cortex-Mem, profile shipped, against the recording of the code that its document describes.

Scores there are single precision: 1e-5 (oracles/README.md).
"""

import numpy as np
from verdicts import Rule, both, counted, differs, near, recording, same

from steelyard import Entry, Vault
from steelyard.base.errors import DimensionMismatchError
from steelyard.embedders.embed import space_of
from steelyard.extensions.cortex_client.client import CortexMem, SearchOptions
from steelyard.extensions.network.endpoint import EndpointError
from steelyard.retrievers.vector import cosine
from steelyard.systems import cortex_mem

SINGLE = 1e-5
LAYERS = (".abstract.md", ".overview.md")


def fnv(word):
    found = 0x811C9DC5
    for byte in word.encode():
        found = (found ^ byte) * 0x01000193 & 0xFFFFFFFF
    return found


RULE = Rule("fnv", 64, counted(64, fnv))
"""The recording's embedding: how often each word's FNV-1a hash, modulo 64, occurs."""


class Stub:
    """Answers every prompt with one text; ``!ERR`` stands for a model that fails."""

    name = "stub"

    def __init__(self, answer):
        self.answer = answer

    def complete(self, prompt):
        if self.answer.startswith("!ERR"):
            raise EndpointError("the stub", "failed")
        return self.answer


class Fixture:
    def __init__(self, folder):
        recorded = recording(folder, "cortex")
        self.recorded, self.newest = recorded["seed_version"], recorded["newest"]
        self.shown = {}  # (directory or file, layer) -> the uri that the store returns for it
        self.vault = self.filled(recorded["data"])

    def filled(self, data):
        fields, vectors = {}, {"l0": {}, "l1": {}, "l2": {}}
        for uri, layer, shown, content in data["vectors"]:
            own, name = fields.setdefault(uri, {}), layer.lower()
            if name != "l2":
                own[name] = content
            vectors[name][uri] = content
            self.shown[uri, name] = shown
        for uri, text in data["files"].items():
            if not uri.endswith(LAYERS):
                fields.setdefault(uri, {})["text"] = text
        vault = Vault(":memory:")
        vault.upsert(Entry(uri, uri=uri, **own) for uri, own in fields.items())
        for name, texts in {**vectors, "text": vectors["l2"]}.items():
            rows = RULE.embed(list(texts.values()))
            keep = rows.any(axis=1)
            ids = [uri for uri, kept in zip(texts, keep, strict=True) if kept]
            vault.put_vectors(space_of(RULE, name, cortex_mem.SHIPPED.reading.recipe), ids, rows[keep])
        return vault


fixture = Fixture


def intents(fixture):
    for query, intent, entity, threshold in fixture.recorded["intents"]:
        ours = (
            cortex_mem.intent_shipped(query),
            cortex_mem.is_entity(query),
            cortex_mem.TABLES["shipped"]["steps"][cortex_mem.classify_shipped(query).name][0],
        )
        yield repr(query), same((intent.lower(), entity, threshold), ours)


def directories(fixture):
    for uri, directory, timeline in fixture.recorded["directories"]:
        yield uri, same((directory, timeline), (cortex_mem.directory_of(uri), cortex_mem.TIMELINE in uri))


def snippets(fixture):
    for at, (content, query, snippet) in enumerate(fixture.recorded["snippets"]):
        yield f"{at} {query!r}", same(snippet, cortex_mem.snippet_shipped(content, query))


def cosines(fixture):
    for a, b, expected in fixture.recorded["cosine"]:
        try:
            found = float(cosine(np.array([a], dtype=np.float32), np.array(b, dtype=np.float32))[0])
        except DimensionMismatchError:
            yield f"{a} {b}", ("left out: vectors of two lengths are an error here, and 0 there", 0.0)
            continue
        yield f"{a} {b}", near({"cosine": expected}, {"cosine": found}, SINGLE)


def layered_runs(fixture):
    yield from runs(fixture, "layered")


def semantic_runs(fixture):
    yield from runs(fixture, "semantic")


def runs(fixture, mode):
    for at, run in enumerate(fixture.recorded["runs"]):
        if run["mode"] == mode:
            yield f"{at} {run['query'][:40]!r} {run['threshold']} {run['scope'] or ''}", one(fixture, run)


def one(fixture, run):
    chat = Stub(run["llm"]) if run["llm"] is not None else None
    options = SearchOptions(run["limit"], run["threshold"], run["scope"] or "", include_content=True)
    with CortexMem(fixture.vault, RULE, profile="shipped", chat=chat) as memory:
        layered, taken = run["mode"] == "layered", same("", "")
        if layered and run["query"].strip():
            taken = steps(run, memory.search(run["query"], options).progress)
        search = memory.layered_semantic_search if layered else memory.semantic_search
        found = search(run["query"], options)
    ours = [(fixture.shown.get((hit.uri, hit.layer), hit.uri), hit.score, hit.snippet.text) for hit in found]
    return both(taken, tied(run["results"], ours))


def steps(run, progress):
    """The store calls say which steps were taken, and how many abstracts the last one found (in any scope)."""
    calls = [call for call in run["store_calls"] if call[0] == "L0"]
    taken = -1 if run["store_calls"][-1][0] == "any" else len(calls) - 1
    found = progress.directories[0] if taken >= 0 and run["scope"] is None else None
    return same((taken, calls[-1][3] if found is not None else None), (progress.step[0], found))


def tied(expected, ours):
    """Rows of nearly one score may change places, and stand for each other at the end of a list."""
    scores = [dict(enumerate(score for _, score, _ in rows)) for rows in (expected, ours)]
    verdict = both(same(len(expected), len(ours)), near(*scores, SINGLE))
    left = [list(row) for row in expected]
    for uri, score, text in () if verdict[0] else ours:
        match = next((row for row in left if row[0] == uri and abs(row[1] - score) <= SINGLE), None)
        if match is not None:
            left.remove(match)
            verdict = both(verdict, same(match[2], text))
        elif score > expected[-1][1] + SINGLE:
            return differs(f"{uri} is not among those of {score}")
    return verdict


def newest_runs(fixture):
    """Where all layers were searched, of files alone: the bonus of a directory reads the layer that was found."""
    moved = {shown for (uri, _), shown in fixture.shown.items() if shown.endswith(".md") and shown != uri}
    for at, run in enumerate(fixture.newest["runs"]):
        options = SearchOptions(run["limit"], run["threshold"], run["scope"] or "")
        with CortexMem(fixture.vault, RULE, profile="newest") as memory:
            search = memory.layered_semantic_search if run["mode"] == "layered" else memory.semantic_search
            found = [(hit.uri, hit.score, "") for hit in search(run["query"], options)]
        every, read = run["store_calls"][-1][0] == "any", run["store_calls"][-1][3]
        expected = [[*row, ""] for row in run["results"]]
        if every:
            expected, found = ([row for row in rows if row[0].endswith(".md")] for rows in (expected, found))
        verdict = tied(expected, found)
        if every and read == 3 * run["limit"]:
            verdict = "left out: only the first 30 rows of all layers get a bonus there", 0.0
        elif every and not moved.isdisjoint(uri for uri, *_ in expected):
            verdict = "left out: the vector of a file has the id of its directory there", 0.0
        yield f"{at} {run['mode']} {run['query'][:40]!r}", verdict
