"""Zero labels, few labels, and pairs by duel: what the first judgments are worth, on ten public collections.

Four parts of `make evidence`. `zero` and `few` choose among the contenders of `decide.public` on lists of ten
collections (`pools.py`), `duel` judges single pairs of them and forecasts, and `curve` is what following
`recommend` gains by the number of labels, on the matrices of all families.
"""

import numpy as np
from duels import AT, Pairs, learned, others
from evidence_rows import GROUPS, USUAL, priors_of
from pools import CHOSEN, CONFIRMED, POOL, TWINS, Lists

from steelyard_eval.choose.duel import MIN_PAIRS
from steelyard_eval.choose.few_labels import (
    LEAD_SD_CONTENDERS,
    Advice,
    FewLabelCandidates,
    ahead_by,
    decide_with_public_prior,
)
from steelyard_eval.choose.public import DEFAULT, PRIOR_QUERIES, PriorGains, PublicGains
from steelyard_eval.choose.rule import ALL_FAMILIES, OVER_FUSION, Expectation, Ruling, apply_rule
from steelyard_eval.choose.scored import Scored
from steelyard_eval.measures.spread import NO_GAIN

SETS = {"chosen on": CHOSEN, "confirmed on": CONFIRMED}
SIZES = (5, 10, 20, 40, 80, 160, 320)
CURVE = (0, 5, 10, 15, 20, 40, 80, 160, 400)
LOSS = 0.001
LOG = 60
"""Queries of a session's log, drawn with replacement."""
BUDGETS = (0, 20, 40, 80, 160, 320)
FORECASTS = (20, 40, 80, 160, 240)
LONGEST = 1200


def pools(folder, embedder="recorded"):
    """name -> the lists of the contenders."""
    return {name: Lists.of(name, folder, embedder).only(POOL) for own in SETS.values() for name in own}


def _others(name, every):
    return [every[one] for one in CHOSEN if one != name and one != TWINS.get(name)]


# Zero labels


def zero_table(every):
    """The loss of what is always the same, and of the best on the other sets."""
    always = {label: _always(label) for label in (DEFAULT, "rrf(bm25, vector, k=60)", "bm25", "vector")}
    methods = {**always, "best on the other sets": lambda own, rest: np.mean([one.truth for one in rest], axis=0)}
    methods["one at random"] = lambda own, rest: np.zeros(len(own.labels))
    lines = ["zero labels: loss to the best of 26, nDCG@10"]
    for label, score in methods.items():
        cells = []
        for title, names in SETS.items():
            losses = {name: every[name].loss(score(every[name], _others(name, every))) for name in names}
            worst = max(losses, key=losses.get)
            cells.append(f"{title} {np.mean(list(losses.values())):.3f} (worst {losses[worst]:.3f} {worst})")
        lines.append(f"{label:58} {'   '.join(cells)}")
    return "\n".join(lines)


def _always(label):
    return lambda own, rest: np.array([one == label for one in own.labels], dtype=float)


def current_table(every):
    """The default against what may be in use."""
    lines = ["the default against what may be in use (better on, mean, worst)"]
    for at, label in enumerate(POOL):
        cells = []
        for names in SETS.values():
            gains = np.array([every[name].truth[AT] - every[name].truth[at] for name in names])
            cells.append(f"{(gains > 0).sum()} of {len(gains)} {gains.mean():+.3f} {gains.min():+.3f}")
        lines.append(f"{label:58} {'   '.join(cells)}")
    return "\n".join(line for line in lines if not line.startswith(DEFAULT))


# A few labelled queries


def few_row(own, rest, n, draws):
    """Draws with replacement: (loss, gain to the default) of the leader."""
    others = [one.values - one.values[AT] for one in rest]
    variance = np.mean([one.var(axis=1, ddof=1) for one in others], axis=0)
    known = np.mean([one.mean(axis=1) for one in others], axis=0)
    elsewhere = PriorGains(known, variance, np.full(len(known), PRIOR_QUERIES))
    differences = own.values - own.values[AT]
    rows = []
    for draw in range(draws):
        asked = np.random.default_rng([n, draw]).integers(0, differences.shape[1], n)
        ahead = ahead_by(differences[:, asked], np.arange(n), elsewhere, LEAD_SD_CONTENDERS)
        top = int(np.argmax(ahead)) if ahead.max() > 0 else AT
        rows.append((own.truth.max() - own.truth[top], own.truth[top] - own.truth[AT]))
    return {"loss": [row[0] for row in rows], "gain": [row[1] for row in rows]}


def few_rows(folder, every, draws):
    """collection, n -> a row."""
    made = {
        (name, n): folder.row(
            f"few.{name}.{n}.{draws}",
            lambda name=name, n=n: few_row(every[name], _others(name, every), n, draws),
        )
        for names in SETS.values()
        for name in names
        for n in SIZES
    }
    return {key: row for key, row in made.items() if row}


def few_table(rows):
    """Mean loss, gain to the default, and how often the choice is worse than it by .005."""
    lines = ["few labelled queries: loss, gain to the default, share worse by .005, share with a loss below .01"]
    for title, names in SETS.items():
        for n in SIZES:
            own = [rows[name, n] for name in names if (name, n) in rows]
            if own:
                loss, gain = (np.array([row[side] for row in own]) for side in ("loss", "gain"))
                worst = names[int(np.argmax(loss.mean(axis=1)))]
                lines.append(
                    f"{title:13} {n:4} {loss.mean():.3f} {gain.mean():+.3f} {(gain < -0.005).mean():.2f} "
                    f"{(loss < 0.01).mean():.2f}   worst {loss.mean(axis=1).max():.3f} {worst}"
                )
    return "\n".join(lines)


# Pairs by duel


def duel_row(pairs, prior, known, sessions):
    """Sessions: the loss at each budget, and forecasts with what it took until the verdict stood."""
    own, rows = pairs.lists, []
    for session in range(sessions):
        rng = np.random.default_rng([7, session])
        contest, gains = pairs.log(rng.integers(0, len(own.ideal), LOG), prior, known)
        seen, losses, forecasts, stood = np.full(len(gains), np.nan), {}, {}, None
        for count in range(min(LONGEST, len(gains)) + 1):
            standing = contest.standing(seen)
            if count in BUDGETS:
                chosen = int(standing.leaders[0]) if count >= MIN_PAIRS else AT
                losses[count] = float(own.truth.max() - own.truth[chosen])
            if standing.stands:
                stood = count if stood is None else stood
                if count >= max(BUDGETS):
                    break
            elif count in FORECASTS:
                forecasts[count] = standing.more
            pair = standing.next()
            if pair is None:
                break
            seen[pair] = gains[pair]
        rows.append({"losses": losses, "forecasts": forecasts, "stood": stood})
    return {"sessions": rows}


def duel_rows(folder, every, sessions):
    """collection -> a row."""
    made, found = {name: Pairs(one) for name, one in every.items()}, {}
    for name, pairs in made.items():
        rest = others(name, made)

        def make(pairs=pairs, rest=rest):
            known = np.mean([one.lists.truth for one in rest], axis=0)
            return duel_row(pairs, learned(rest), known, sessions)

        row = folder.row(f"duel.{name}.{sessions}", make)
        if row:
            found[name] = row
    return found


def duel_table(rows):
    """Loss by judged pairs, and how far forecasts are from what it took."""
    lines = ["pairs by duel: loss to the best of 26 (below 80 pairs the default stands)"]
    for title, names in SETS.items():
        for budget in BUDGETS:
            cells = {
                name: np.mean(
                    [one["losses"][str(budget)] for one in rows[name]["sessions"] if str(budget) in one["losses"]]
                )
                for name in names
                if name in rows
            }
            if cells:
                worst = max(cells, key=cells.get)
                mean = np.mean(list(cells.values()))
                lines.append(f"{title:13} {budget:4} {mean:.3f}   worst {cells[worst]:.3f} {worst}")
    lines.append(
        "forecasts of the judgments to come: sessions, within a factor of 1.5, median of forecast over truth"
    )
    every = [one for row in rows.values() for one in row["sessions"]]
    for at in FORECASTS:
        ratios = np.array(
            [
                one["forecasts"][str(at)] / (one["stood"] - at)
                for one in every
                if str(at) in one["forecasts"] and one["stood"]
            ]
        )
        within = np.mean((ratios >= 1 / 1.5) & (ratios <= 1.5))
        lines.append(f"after {at:4} {len(ratios):4} {100 * within:4.0f}% {np.median(ratios):.2f}")
    stood = [one["stood"] for one in every if one["stood"]]
    lines.append(
        f"stood after {np.quantile(stood, [0.1, 0.5, 0.9]).round().tolist()} pairs (10, 50, 90%); "
        f"not in {len(every) - len(stood)} of {len(every)} sessions"
    )
    return "\n".join(lines)


# Following what is recommended, by the number of labels


def curve_drawn(own, rest, current, n, draws):
    """What the labels of each draw show of the contenders and of what `decide` takes; None where too few are left.

    `curve_row` applies the rule for few labels to it, so that the rule can be changed without deciding again.
    """
    if n > 0.8 * own.queries:
        return None
    (rows, variance, default), shown = (
        _contenders(own, rest),
        np.array([one.metric.mean[one.keys.index(_name(one))] for one in rest]),
    )
    about = {"shown": shown.tolist(), "variance": variance.tolist(), "default": rows.tolist().index(default)}
    if n == 0:
        return {**about, "truth": [float(own.metric.mean[default])], "draws": []}
    priors, found = priors_of(rest, own.keys), []
    for draw in range(draws):
        labelled = np.random.default_rng([n, draw]).permutation(own.queries)[:n]
        evidence = own.evidence(labelled, priors)
        decision = apply_rule(Expectation(evidence, USUAL.get(current, OVER_FUSION)), ALL_FAMILIES)
        own_rows = [*rows.tolist(), *([] if decision.candidate is None else [decision.candidate])]
        known = {
            side: [v[own_rows].tolist() for v in vars(getattr(evidence, side)).values()] for side in PRIOR_SIDES
        }
        values = {
            side: np.round(getattr(evidence, side)[own_rows], 6).tolist() for side in ("metric", "composite")
        }
        found.append({"verdict": decision.verdict, "truth": own.metric.mean[own_rows].tolist(), **known, **values})
    return {**about, "draws": found}


PRIOR_SIDES = ("prior_metric", "prior_composite")


def curve_row(drawn, current, n):
    """(verdict, gain on all queries) as it was and as it is, by draw."""
    likely = PublicGains(np.array(drawn["shown"])).likely and current not in ("weighted sum, half",)
    shown = PublicGains(np.array(drawn["shown"]))
    advice = Advice("try" if likely else "keep", "", "", attempt=ANY if likely else None, shown=shown)
    if n == 0:
        return {"before": [["keep", 0.0]], "now": [[advice.verdict, drawn["truth"][0] if likely else 0.0]]}
    variance, default = np.array(drawn["variance"]), drawn["default"]
    before, now = [], []
    for one in drawn["draws"]:
        known = [PriorGains(*map(np.array, one[side])) for side in PRIOR_SIDES]
        elsewhere = known[0].mean[: len(variance)]
        known_gain = elsewhere - elsewhere[default]
        few = FewLabelCandidates(np.arange(len(variance)), known_gain, variance, default, favoured=likely)
        evidence = Scored.of(np.array(one["metric"]), np.array(one["composite"]), tuple(known))
        taken = None if one["verdict"] == "keep" else len(variance)
        found = Ruling(one["verdict"], taken, NO_GAIN, 0.0, None)
        then, _ = decide_with_public_prior(found, Expectation(evidence), ALL_FAMILIES, few, n)
        for own, rows in ((found, before), (then, now)):
            rows.append([own.verdict, 0.0 if own.candidate is None else one["truth"][own.candidate]])
    return {"before": before, "now": now}


ANY = object()
"""Stands for a configuration that is worth trying."""


def _name(differences):
    return next(key for key in differences.keys if key.endswith(" " + DEFAULT))


def _contenders(own, rest):
    """The contenders' rows, the variances of their differences to the default elsewhere, and the default's row."""
    at = {key: row for row, key in enumerate(own.keys)}
    keys = [key for key in _keys() if key in at]
    variances = []
    for one in rest:
        index = {key: row for row, key in enumerate(one.keys)}
        base = one.metric.values[index[_name(one)]]
        variances.append([(one.metric.values[index[key]] - base).var(ddof=1) for key in keys])
    rows = np.array([at[key] for key in keys])
    return rows, np.mean(variances, axis=0), at[_name(own)]


def _keys():
    from steelyard_eval.choose.public import CONTENDERS, public_table

    return [key for key, label in public_table().rows.items() if label in CONTENDERS]


def curve_table(rows):
    """Gain and harm by labels; each step on the collections that have both."""
    lines = ["following what is recommended (gain in 10^-4 nDCG@10 on all queries; shares in %)"]
    lines.append(
        "                  n rows   gain before  now    ship  harm of ship   try  harm of try  step [error]"
    )
    for title, names in GROUPS.items():
        previous = None
        for n in CURVE:
            own = {key: row for key, row in rows.items() if key[1] in names and key[2] == n}
            if not own:
                continue
            sides = {side: {key: _mean(row[side]) for key, row in own.items()} for side in ("before", "now")}
            flat = [cell for row in own.values() for cell in row["now"]]
            shares = []
            for verdict in ("ship", "try"):
                of = [gain for what, gain in flat if what == verdict]
                harm = 100 * np.mean([gain < -LOSS for gain in of]) if of else 0.0
                shares.append(f"{100 * len(of) / len(flat):5.0f} {harm:8.1f}     ")
            step = _step(previous, sides["now"])
            gains = [1e4 * np.mean(list(sides[side].values())) for side in ("before", "now")]
            lines.append(
                f"{title:13} {n:5} {len(own):4} {gains[0]:8.0f} {gains[1]:8.0f}  {''.join(shares)} {step}"
            )
            previous = sides["now"]
    return "\n".join(lines)


def _mean(cells):
    return float(np.mean([gain for _, gain in cells]))


def _step(before, now):
    """The change from the last number of labels, over what has both, and its standard error over rows."""
    if before is None:
        return ""
    steps = [
        now[key] - old for (current, name, n), old in before.items() for key in now if key[:2] == (current, name)
    ]
    return (
        f"{1e4 * np.mean(steps):+5.0f} [{1e4 * np.std(steps, ddof=1) / np.sqrt(len(steps)):.0f}]" if steps else ""
    )
