"""The tables of `make evidence`, from rows of (group, case or current, collection, n)."""

import numpy as np

SYSTEMS = ("echovault", "soleri", "moltnet", "spec_kit", "cortex_mem")
RETRIEVERS = ("fts", "bm25", "vector")
DRAWS = 2000
WAYS = ("apart", "as one")
TOLD = ("figures", "stated", "unstated", "no zeros")


def mean_of(rows, value):
    """Mean over rows, with its 95% interval by drawing collections with replacement."""
    collections = sorted({key[2] for key in rows})
    by = {name: [value(row) for key, row in rows.items() if key[2] == name] for name in collections}
    rng = np.random.default_rng(0)
    means = []
    for _ in range(DRAWS):
        drawn = rng.choice(len(collections), len(collections))
        means.append(np.mean([one for at in drawn for one in by[collections[at]]]))
    every = [one for own in by.values() for one in own]
    return float(np.mean(every)), *(float(end) for end in np.quantile(means, [0.025, 0.975]))


def rule_table(rows):
    """Per group: unseen gain x 10^-4, harm and promise kept, by number of labelled queries."""
    lines = ["The rule inside one strategy (gain in 10^-4 nDCG@10 [95% over collections], harm in % of splits)"]
    for group in dict.fromkeys(key[0] for key in rows):
        sizes = sorted({key[3] for key in rows if key[0] == group})
        lines += ["", f"{group}: {', '.join(dict.fromkeys(key[2] for key in rows if key[0] == group))}"]
        lines.append(f"{'':14}" + "".join(f"{n:>18}" for n in sizes))
        ways = next(iter(rows.values()))
        for way in ways:
            lines.append(f"{way:14}" + "".join(f"{_gain(rows, group, n, way):>18}" for n in sizes))
        for name, label in (("harm", "harm"), ("population harm", "harm, all"), ("moved", "moved")):
            for way in ways:
                cells = [_share(rows, group, n, way, name) for n in sizes]
                lines.append(f"{label + ' ' + way:24}" + "".join(f"{cell:>10}" for cell in cells))
        kept = [_kept(_at(rows, group, n), "A, shipped") for n in sizes]
        lines.append(f"{'promise kept, A':24}" + "".join(f"{cell:>10}" for cell in kept))
    return "\n".join(lines)


def _at(rows, group, n):
    return {key: row for key, row in rows.items() if key[0] == group and key[3] == n}


def _gain(rows, group, n, way):
    mean, low, high = mean_of(_at(rows, group, n), lambda row: 1e4 * row[way]["gain"])
    return f"{mean:.0f} [{low:.0f}, {high:.0f}]"


def _share(rows, group, n, way, name):
    return f"{100 * np.mean([row[way][name] for row in _at(rows, group, n).values()]):.1f}"


def _kept(rows, way):
    promised = sum(row[way]["promised"] for row in rows.values())
    return f"{sum(row[way]['kept'] for row in rows.values()) / promised:.0%}" if promised else "-"


COLUMNS = {
    "gain": (1e4, ".0f"),
    "ship": (100, ".0f"),
    "try": (100, ".0f"),
    "harm": (100, ".1f"),
    "false ship": (100, ".1f"),
    "stated harm": (100, ".1f"),
    "try right": (100, ".0f"),
    "try harm": (100, ".1f"),
    "bound covers": (100, ".1f"),
    "bound": (1, ".3f"),
    "right": (100, ".0f"),
}


def recommend_table(rows, best):
    """Per group of collections and of current configurations, by number of labelled queries."""
    lines = ["recommend over all families (gain in 10^-4 nDCG@10; shares in % of splits)"]
    kinds = {
        "systems": lambda key: key[1] in SYSTEMS,
        "retrievers": lambda key: key[1] in RETRIEVERS,
        "fusions": lambda key: key[1] not in (*SYSTEMS, *RETRIEVERS),
        "presets": lambda key: True,
        "best preset": lambda key: key[1] == best.get(key[2]),
    }
    lines.append(f"{'collections':14}{'current':13}{'n':>5}{'rows':>6}" + _heads())
    for group in dict.fromkeys(key[0] for key in rows):
        for kind, belongs in kinds.items():
            for n in sorted({key[3] for key in rows}):
                own = {key: row for key, row in rows.items() if key[0] == group and key[3] == n and belongs(key)}
                if own:
                    lines.append(f"{group:14}{kind:13}{n:>5}{len(own):>6}" + _cells(own))
    worst = sorted(rows.items(), key=lambda item: -item[1]["harm"])[:8]
    lines += ["", "worst rows by harm"]
    lines += [
        f"{key[2]:12}{key[1]:20}{key[3]:>5}  harm {row['harm']:.0%}, gain {row['gain']:+.4f}" for key, row in worst
    ]
    return "\n".join(lines)


def repeats_table(rows):
    """Per number of questions and current configuration: ships and false ships, counted apart and as one."""
    lines = ["Questions asked five times each: ships and false ships of so many splits"]
    lines.append(f"{'questions':>9}  {'current':22}{'splits':>7}" + "".join(f"{way:>18}" for way in WAYS))
    for n in sorted({key[2] for key in rows}):
        for current in (*dict.fromkeys(key[0] for key in rows), "all"):
            own = [row for key, row in rows.items() if key[2] == n and current in (key[0], "all")]
            splits = sum(row[WAYS[0]]["splits"] for row in own)
            lines.append(f"{n:>9}  {current:22}{splits:>7}" + "".join(_ships(own, way) for way in WAYS))
    return "\n".join(lines)


def _ships(rows, way):
    ships, wrong, splits = (sum(row[way][name] for row in rows) for name in ("ship", "false ship", "splits"))
    return f"{f'{ships}, {wrong} ({wrong / splits:.1%})':>18}"


def _heads():
    return "".join(f"{name:>14}" for name in COLUMNS) + f"{'kept':>8}"


def _cells(rows):
    cells = []
    for name, (scale, form) in COLUMNS.items():
        cells.append(f"{scale * np.mean([row[name] for row in rows.values()]):>14{form}}")
    promised = sum(row["promised"] for row in rows.values())
    kept = f"{sum(row['gain'] for row in rows.values()) / promised:.0%}" if promised else "-"
    return "".join(cells) + f"{kept:>8}"


def chosen_table(rows):
    """Per case and collection: what ships by figures alone, with labels stated and not, and how much is false.

    Of all families first, then of the settings of one strategy.
    """
    return "\n\n".join(
        (_chosen(rows, "recommend"), _chosen({key: row["tune"] for key, row in rows.items()}, "tune"))
    )


def _chosen(rows, command):
    heads = "".join(f"{way:>16}" for way in TOLD)
    lines = [
        f"{command}, labels that were chosen (% of draws: ships, false ships; gain on all queries over promise)",
        f"{'case':14}{'collection':12}{'draws':>6}{heads}{'kept':>7}",
    ]
    for case in dict.fromkeys(case for _, case in rows):
        own = {name: row for (name, of), row in rows.items() if of == case and row["draws"]}
        lines += [_told(case, name, [row]) for name, row in own.items()]
        lines += [_told(case, "mean", list(own.values()))] if own else []
    return "\n".join(lines)


def _told(case, name, rows):
    cells = []
    for way in TOLD:
        ships, wrong = (np.mean([row[key] / row["draws"] for row in rows]) for key in (way, f"{way} false"))
        cells.append(f"{f'{ships:.1%} {wrong:.1%}':>16}")
    promised = sum(row["figures promised"] for row in rows)
    kept = sum(row["figures gained"] for row in rows) / promised if promised else 0
    return f"{case:14}{name:12}{sum(row['draws'] for row in rows):>6}{''.join(cells)}{kept:>7.0%}"
