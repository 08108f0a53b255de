"""The leaderboard as one self-contained page, in the look of reports: readable on a phone, its tables folded."""

import re
from html import escape

import numpy as np
from markupsafe import Markup

from steelyard_eval.views.report.page import Section, TableBlock, Texts
from steelyard_eval.views.report.write import rendered
from steelyard_eval.views.sheets import Sheet, SheetColumn

MEANS = ("R@5", "R@10", "any@5", "MRR")
COSTS = ("embedded", "MB", "ms")


def html(text, order, titles, found):
    """The page; `text` is Markdown in paragraphs, the first of which is the answer, `found` has the tables."""
    first, *others = text.split("\n\n")
    shown = [(title, about, rows) for title, (_, _, about, rows, *_) in zip(titles, found, strict=True) if rows]
    sections = (
        *_summary(order, found),
        Section("about", "What was measured, and how", (Texts(tuple(map(_inline, others))),), folded=True),
        *(
            Section(
                f"t{at}", title, (_table(title, about, list(map(_row, rows)), [row[7] for row in rows]),), True
            )
            for at, (title, about, rows) in enumerate(shown)
        ),
    )
    above = {"title": "Leaderboard of memory retrieval", "sentence": _inline(first), "facts": tuple(_facts(found))}
    nothing = dict.fromkeys(("badge", "because", "formula", "caveat", "description"), "")
    return rendered({**nothing, **above, "steps": []}, sections)


def _table(title, about, rows, verdicts=()):
    names = list(rows[0])
    columns = tuple(SheetColumn(name, key=name) for name in names)
    cells = tuple(tuple(row[name] for name in names) for row in rows)
    return TableBlock(Sheet(title, title, columns, cells, about, tuple(verdicts)))


def _facts(found):
    yield "collections", str(len({name for name, *_ in found}))
    yield "embedders", str(len({kind for _, kind, *_ in found}))
    yield "contenders", str(len({row[0] for _, _, _, rows, *_ in found for row in rows}))


def by_mean(found):
    """nDCG@10 by table and contender, and the contenders by their mean over all tables."""
    values = {(name, kind): {row[0]: row[1] for row in rows} for name, kind, _, rows, *_ in found if rows}
    labels = {label for own in values.values() for label in own}
    mean = {label: np.mean([float(own.get(label, 0)) for own in values.values()]) for label in labels}
    return values, sorted(labels, key=lambda label: (-mean[label], label))


def _summary(order, found):
    """For every embedder a table with a column for each collection, its rows by the mean over all tables."""
    values, labels = by_mean(found)
    for at, kind in enumerate(dict.fromkeys(kind for _, kind in values)):
        own = {name: rows for (name, other), rows in values.items() if other == kind}
        rows = [
            {"contender": label, **{name: _number(rows.get(label, "")) for name, rows in own.items()}}
            for label in labels
        ]
        title = f"nDCG@10 of all, {kind}"
        yield Section(f"all-{kind}", title, (_table(title, order, rows),), folded=at > 0)


def _row(cells):
    label, ndcg, *means, interval, difference, p, verdict, embedded, size, taken = cells
    return {
        "contender": label,
        "nDCG@10": f"{ndcg} {interval}".strip(),
        **dict(zip(MEANS, map(_number, means), strict=True)),
        "against bm25": difference if verdict else _number(""),
        "p (Holm)": _number(p),
        "verdict": verdict or "baseline",
        **dict(zip(COSTS, map(_number, (embedded, size, taken)), strict=True)),
    }


def _number(text):
    return text or "–"  # noqa: RUF001 -- a dash


def _inline(text):
    """A paragraph of the page in HTML: code, bold, emphasis, and the words of links."""
    parts = escape(text, quote=False).split("`")
    for at in range(0, len(parts), 2):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", parts[at])
        parts[at] = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", plain))
    return Markup("".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts)))  # noqa: S704 -- escaped above
