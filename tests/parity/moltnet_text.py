"""MoltNet's full-text side, outside PostgreSQL, against what PostgreSQL 15 recorded.

Errors are relative to the recorded rank. The recording lists the rows of a query best first and cuts them where
2 x limit ends, after the last tie.
"""

import re

from verdicts import SINGLE, compare, recording, same

from steelyard.retrievers.english import tsvector
from steelyard.retrievers.tsearch import Joined, Not, best, flat, has_negation, ranker, websearch
from steelyard.stores.postings import ScopedPostings


def fixture(folder):
    return recording(folder, "moltnet")


def text_of(entry):
    return " ".join((entry["title"] or "", entry["content"], " ".join(entry["tags"] or ())))


def parsed(tsv):
    found = re.findall(r"'((?:[^']|'')+)':([\d,]+)", tsv)
    return {word.replace("''", "'"): tuple(map(int, places.split(","))) for word, places in found}


def allowed(recorded, query):
    superseded = {target for _, target, *kind in recorded["relations"] if kind == ["supersedes", "accepted"]}
    diaries = recorded["scope"]["diaries"]
    return {
        entry["n"]
        for entry in recorded["entries"]
        if in_scope(diaries[entry["diary"]], entry["diary"], query)
        and has_tags(set(entry["tags"] or ()), entry["tags"] is None, query)
        and (query["types"] is None or entry["entry_type"] in query["types"])
        and not (query["exclude_superseded"] and entry["n"] in superseded)
        and not (query["exclude_suspicious"] and entry["injection_risk"])
        and (query["before"] is None or entry["created_at"] < query["before"])
        and (query["after"] is None or entry["created_at"] >= query["after"])
    }


def in_scope(diary, name, query):
    if query["diaries"] is None and query["teams"] is None:
        return diary["visibility"] == "public"
    return name in (query["diaries"] or ()) or diary["team"] in (query["teams"] or ())


def has_tags(tags, untagged, query):
    required = set(query["tags"] or ())
    return required <= tags and not (required and untagged) and not tags & set(query["exclude_tags"] or ())


def tsvectors(recorded):
    for entry in recorded["entries"]:
        yield f"n{entry['n']}", same(parsed(entry["tsv"]), tsvector(text_of(entry)))


def tsqueries(recorded):
    for query in recorded["queries"]:
        # No tsquery was made there for a text that is null or empty; ours has no terms.
        yield query["qid"], same(query["tsquery"] or "", printed(websearch(query["query"] or "")))


def negation_flags(recorded):
    for query in recorded["queries"]:
        node = websearch(query["query"] or "")
        yield query["qid"], same(query["negation"], node is not None and has_negation(node))


def ranks_of_recorded_vectors(recorded):
    """Every recorded rank, from the recorded vector; each of these entries has to match."""
    vectors = {entry["n"]: parsed(entry["tsv"]) for entry in recorded["entries"]}
    for query in recorded["queries"]:
        node = websearch(query["query"] or "")
        for n, expected in query["fts"]:
            verdict = compare([(n, expected)], [(n, ranker(node)(vectors[n]))], SINGLE)
            matches = best(ScopedPostings.of([("n", flat(vectors[n]))]), node)
            yield f"{query['qid']} n{n}", verdict if matches else same("a match", "none")


def own_analysis(recorded):
    """Text in, ranks out: the same rows as recorded, at the same ranks, and below them only lower ones."""
    index = ScopedPostings.of((str(entry["n"]), flat(tsvector(text_of(entry)))) for entry in recorded["entries"])
    for query in recorded["queries"]:
        scope = allowed(recorded, query)
        asked = websearch(query["query"] or "")
        rows = best(index, asked) if asked else []
        found = {int(n): score for n, score in rows if int(n) in scope}
        yield f"{query['qid']} total", same(query["fts_total"], len(found))
        yield f"{query['qid']} ranks", against(dict(query["fts"]), found)


def against(expected, found):
    """The recorded rows, and nothing that ranks as high as the last of them."""
    last = min(expected.values(), default=float("inf"))
    got = [(n, score) for n, score in sorted(found.items()) if score >= last * (1 - SINGLE)]
    return compare(sorted(expected.items()), got, SINGLE, tie=-1)


# Queries as PostgreSQL prints them


def printed(node):
    if node is None:
        return ""
    if isinstance(node, Joined):
        return f" {node.sign} ".join(inside(part, node) for part in node.parts)
    if isinstance(node, Not):
        return "!" * node.times + inside(node.part, node)
    quoted = ["'{}'".format(lexeme.replace("\\", "\\\\").replace("'", "''")) for lexeme in node.lexemes]
    steps = [later - offset for offset, later in zip(node.offsets, node.offsets[1:], strict=False)]
    more = zip(steps, quoted[1:], strict=True)
    return quoted[0] + "".join(f" <{step if step > 1 else '-'}> {lexeme}" for step, lexeme in more)


def inside(part, whole):
    """A part in brackets where it binds less tightly."""
    return f"( {printed(part)} )" if binding(part) < binding(whole) else printed(part)


def binding(node):
    if isinstance(node, Joined):
        return "|&".index(node.sign)
    return 3 if isinstance(node, Not) else 2 if len(node.lexemes) > 1 else 4
