"""What memory systems for agents take: arguments of calls, their own file of weights, or patches of constants.

``patches.json`` has the lines of the constants, of the newest program and of that which its document describes; a
patch is a unified diff without context, for ``git apply --unidiff-zero``.
"""

import math
import re
from collections.abc import Mapping
from importlib import resources

from steelyard.base.errors import ConfigError
from steelyard.base.extensions import extension
from steelyard.base.files import STRICT_JSON
from steelyard.config import WEIGHT_NAMES, SearchConfig
from steelyard.finish import Cut
from steelyard.fusion import RECIPROCAL, Expr, Linear, Signal, Term, leaves
from steelyard.fusion.ranks import Gated
from steelyard.fusion.routing import Boost, Tiered
from steelyard.grammar import number_text
from steelyard.retrievers import EMBEDDING
from steelyard.systems import find_system
from steelyard_eval.export import base
from steelyard_eval.export.base import Fusion, Loss, Parts, Target
from steelyard_eval.export.strategy_changes import changes

SOURCES = STRICT_JSON.decode(resources.files(__package__).joinpath("patches.json").read_text("utf-8"))
PATCHED = "no configuration of it has these: apply the patch to its source, git apply --unidiff-zero"


def patched(target: str, values: Mapping[str, float]) -> dict[str, str]:
    """The patches of a target, by name: each sets the lines of constants to these values."""
    patches: dict[str, str] = {}
    for name, source in SOURCES[target].items():
        patch = [f"# {source['of']}", f"--- a/{source['path']}", f"+++ b/{source['path']}"]
        for number, line, old, key in source["lines"]:
            if values[key] != float(old):
                new = line.format(number_text(values[key]))
                patch += [f"@@ -{number} +{number} @@", f"-{line.format(old)}", f"+{new}"]
        patches |= {name: "\n".join([*patch, ""])} if len(patch) > 3 else {}
    return patches


def _echovault(config: SearchConfig) -> Parts:
    """The limit of a call, and patches: the weights and `min_fts_results` are constants in code.

    The weights need not sum to 1. Today's program also counts only keyword hits of 0.15 of the best and more, has
    other weights where one such hit disagrees with the vectors, and lowers what looks like a test: `least`,
    `disputed` and `housekeeping` of echovault:newest. Its patch takes out what the strategy lacks, and the
    document's program has none of the three. Source: the code (see `patches.json`).
    """
    tiered, kept = config.effective, {"diagnostic": 1.0, "test": 1.0}
    if isinstance(tiered, Boost) and [str(term.expr) for term in tiered.factors] == ["housekeeping"]:
        much, low = tiered.factors[0].weight, tiered.low
        kept, tiered = {"diagnostic": max(low, 1 - much * 0.45), "test": max(low, 1 - much * 0.25)}, tiered.expr
    firsts = ("weighted_sum(1*fts, normalize=max)", "fts")
    if not isinstance(tiered, Tiered) or str(tiered.first) not in firsts[: 1 + (tiered.least is None)]:
        raise Loss("it searches keywords first, and merges only where they find too little: tiered(fts, ...)")
    weights, other = _merged(tiered.then), _merged(tiered.disputed or tiered.then)
    values = {"fts_weight": weights["fts"], "vec_weight": weights["vector"], "min_fts_results": tiered.min_results}
    today = {"strong": tiered.least or 0.0, "disputed_fts": other["fts"], "disputed_vec": other["vector"]}
    patches, mine = patched("echovault", values | today | kept), config.retrievers["vector"].similarity
    if tiered.least is not None or tiered.disputed or tiered is not config.effective:
        patches.pop("patch_documented", None)
    notes = [*([PATCHED] if patches else []), *_other_depths(config)]
    for patch, profile in {"patch": "echovault:newest", "patch_documented": "echovault:shipped"}.items():
        theirs = find_system(profile).config().retrievers["vector"].similarity
        if patch in patches and mine != theirs:
            notes.append(f"{patch}: vectors are compared by {theirs} there, by {mine} here; tune {profile} for it")
    return {"limit": config.limit, **values, **patches}, notes


def _other_depths(config: SearchConfig) -> list[str]:
    """Notes on lists that were tuned at another depth than twice the limit."""
    deep = 2 * config.limit
    return [
        f"lists are 2 x limit = {deep} deep there; {name} was tuned at depth {depth}"
        for name, depth in config.depths.items()
        if name in ("vector", "fts") and depth != deep
    ]


def _merged(then: Expr) -> dict[str, float]:
    merged = then.describe()
    if not isinstance(merged, Linear) or merged.scale == RECIPROCAL:
        raise Loss(f"{then} as the second tier: it merges by a weighted sum only")
    if merged.scale != "max":
        raise Loss(f"normalize={merged.scale} has no counterpart: it divides every list by its maximum")
    if set(weights := base.weights_of(merged.terms)) != {"fts", "vector"}:
        raise Loss(f"a sum of {', '.join(sorted(weights))}: it merges fts and vector, no more and no less")
    return weights


HALF_LIFE_HOURS = math.log(0.5) / math.log(0.99)  # 68.97: the half-life of 0.99 per hour
GATED = "gated(vector, least=0.4)"  # the vector list of today's program


def _moltnet(config: SearchConfig) -> Parts:
    """The arguments of a search of today's program and of the document's, and a patch where k is not 60.

    ``w_relevance * rrf + w_recency * 0.99^hours + w_importance * importance / 10``, with RRF over the vector list
    and the full-text list, both of weight 1. Today's divides rrf by 2 / (k + 1) (migration 0022), so the weight of
    relevance is multiplied by it. The API takes weights of 0 to 1: larger ones are divided by the largest, which
    changes no order. Sources: MoltNet's document, scoring model, and the code (see `patches.json`).
    """
    retrievers, priors = base.with_priors(config.effective) or ([Term(1.0, config.effective)], [])
    if len(retrievers) != 1:
        raise Loss(f"{len(retrievers)} terms find entries: its relevance is one rrf(vector, fts)")
    relevance, k = _relevance(retrievers[0])
    weights = {"w_relevance": relevance, "w_recency": 0.0, "w_importance": 0.0}
    for term in priors:
        weights[_prior(term)] += term.weight
    if not any(weights.values()):
        raise Loss("all weights are 0, so nothing decides the order")
    limit, k = base.integer(config.limit, "limit", 1, 100), base.integer(k, "k", 0, 2**31 - 1)
    generations = {"arguments": weights | {"w_relevance": relevance * 2.0 / (k + 1)}}
    patches, notes = patched("moltnet", {"rrf_k": k}), _other_depths(config)
    if GATED not in str(retrievers[0].expr):
        generations["arguments_documented"] = weights
        notes.append("its vector list lacks what has a cosine below 0.4; tune moltnet:newest for it")
    notes += [PATCHED] if patches else []
    if any(
        term.weight and isinstance(one := term.expr, Signal) and one.option("since") == "update" for term in priors
    ):
        notes.append("its recency runs from the last access, else creation; here from the update")
    parts: dict[str, object] = {
        part: {name: weight / max(1.0, *own.values()) for name, weight in own.items()} | {"limit": limit}
        for part, own in generations.items()
    }
    return parts | patches, notes


def _relevance(term: Term) -> tuple[float, float]:
    """The weight of the relevance term, and k. Equal weights inside RRF multiply the whole term."""
    rrf = term.expr.describe()
    if not isinstance(rrf, Linear) or rrf.scale != RECIPROCAL:
        raise Loss(f"{term.expr} as relevance: it is one rrf(vector, fts)")
    gate = [one.expr for one in rrf.terms if isinstance(one.expr, Gated)]
    if rrf.beyond or any(str(expr) != GATED for expr in gate):
        raise Loss(rrf.beyond or f"{gate[0]}: its vector list has what has a cosine of 0.4 and more, {GATED}")
    lists = base.weights_of([Term(one.weight, Signal("vector")) if one.expr in gate else one for one in rrf.terms])
    if set(lists) != {"vector", "fts"}:
        raise Loss(f"rrf over {', '.join(lists)}: it fuses vector and fts, no more and no less")
    if lists["vector"] != lists["fts"]:
        raise Loss("its RRF has no weights: vector and fts count the same")
    return term.weight * lists["fts"], rrf.k


def _prior(term: Term) -> str:
    expr = term.expr
    if expr == Signal("importance"):
        return "w_importance"
    if not isinstance(expr, Signal) or expr.name != "recency":
        raise Loss(f"{expr} is no part of its score; it adds recency and importance only")
    base.date_of(expr)
    if abs(base.half_life_of(expr) / 3600 - HALF_LIFE_HOURS) > 0.1:  # 69h is how it is written
        raise Loss(
            f"half_life={expr.option('half_life')}: its decay is fixed at 0.99 per hour, a half-life of 69h"
        )
    return "w_recency"


NAMES = {ours: theirs for theirs, ours in WEIGHT_NAMES["soleri"].items()}  # `graph` in today's program alone


def _soleri(config: SearchConfig) -> Parts:
    """The limit of a call, and patches: the weights, the half-life and the depth are constants in code.

    Six signals have weights that sum to 1: others are divided by their sum, so no order of vault entries changes.
    Today's program has a seventh, the links of entries, and other weights while it has no vectors: what a search
    without them has here. Sources: Soleri's document, six scoring signals, and the code (see `patches.json`).
    """
    table, alone = (
        _total(one, config) for one in (config.effective, config.without(EMBEDDING) or config.effective)
    )
    finds = {"fts", "vector"} if config.effective.signals & EMBEDDING else {"fts"}
    if config.effective.retrievers and not finds <= config.effective.retrievers:
        raise Loss("it ranks what keywords and vectors find: write 0*fts and 0*vector, or no list of entries")
    halves = {base.half_life_of(one) / 86_400 for one in leaves(config.effective) if one.name == "recency"}
    if len(halves) > 1 or not any(table.values()):
        raise Loss("two half-lives: its decay has one" if halves else "all weights are 0, and they must sum to 1")
    linked = bool(table["graphProximity"])
    alone = alone if any(alone.values()) else table
    shares, plain = (one if linked else Fusion("none", one).shares() for one in (table, alone))
    notes = ["after 30 feedback entries it adapts these weights itself"]
    if table != shares:
        notes.append(
            "weights are divided by their sum, since its weights sum to 1; no order of vault entries changes, "
            "their place among memories (a fixed 0.5) may"
        )
    if table["temporalDecay"]:
        notes.append("an entry with valid_until decays by its window there")
    deep = max([config.depths[name] or 0 for name in ("fts", "vector") if name in config.depths], default=30)
    values = {"half_life_days": next(iter(halves), 365.0), "depth": max(deep, 30)}
    patches = patched("soleri", shares | values | {f"{name} alone": value for name, value in plain.items()})
    if linked:
        patches.pop("patch_documented", None)
    weights = {name: value for name, value in shares.items() if linked or name != "graphProximity"}
    return {"weights": weights, "limit": config.limit, **patches}, [*([PATCHED] if patches else []), *notes]


def _total(expr: Expr, config: SearchConfig) -> dict[str, float]:
    """The weight of each signal in its total; keywords and vectors at weight 0 only find entries."""
    strategy = expr.describe()
    if not isinstance(strategy, Linear) or strategy.scale == RECIPROCAL:
        raise Loss(f"{expr} is no weighted sum, and its score is one")
    terms = [term for term in strategy.terms if term.weight or str(term.expr) not in ("fts", "vector")]
    losses = [why for term in terms if (why := _why_not(term.expr, config))]
    if strategy.scale != "none":
        losses.append(f"normalize={strategy.scale} has no counterpart: it adds the signals as they are")
    if losses:
        raise Loss(*dict.fromkeys(losses))
    table = dict.fromkeys(NAMES.values(), 0.0)
    for term in terms:
        table[NAMES[str(term.expr).partition("(")[0]]] += term.weight
    return table


def _why_not(expr: Expr, config: SearchConfig) -> str:
    """Why a term is none of its signals; empty when it is one."""
    if not isinstance(expr, Signal) or expr.name not in NAMES:
        hint = {"fts": "; its keyword signal is tfidf", "vector": "; its vector signal is cosine"}.get(
            str(expr), ""
        )
        return f"{expr} is none of its signals{hint}"
    if expr.name == "graph":
        own, newest = (one.retrievers.get("graph") for one in (config, find_system("soleri:newest").config()))
        if own != newest:
            return "graph: its links lead on as those of soleri:newest do, and no other way"
    late = expr.option("since") == "access"
    return f"{expr}: its decay runs from the last update, not from the last access" if late else ""


def _spec_kit(config: SearchConfig) -> Parts:
    """The file's parts, with a note on every setting that importing it does not bring back."""
    own_file = extension("spec_kit_file")
    try:
        record = own_file.write_foreign(config)
    except ConfigError as error:
        raise Loss(str(error)) from None
    zeros = [name for name in ("k", "convergenceBonus", "graphWeightBoost") if not record["rrfFusion"][name]]
    ours, theirs = _settings(config), _settings(own_file.read_foreign(record))
    notes = [
        "the program reads only smartRanking and maxTriggersPerMemory of this file; rrfFusion and crossEncoder "
        "have to be set in its code",
        *([f"the program takes 0 for not given: {', '.join(zeros)}"] if zeros else []),
        *(
            f"not in the file: {name} is {ours.get(name)}, which comes back as {theirs.get(name)}"
            for name in sorted(ours.keys() | theirs.keys())
            if ours.get(name) != theirs.get(name)
        ),
    ]
    return record, notes


def _settings(config: SearchConfig) -> dict[str, object]:
    """The limit, the stages, and the settings of the lists that are read, each by its name."""
    read = config.effective.signals & config.retrievers.keys()
    facts: dict[str, object] = {"limit": config.limit, "rewrite": config.rewrite, "rerank": config.rerank.provider}
    facts["finish"] = ", ".join(str(stage) for stage in config.finish if stage != Cut(config.limit)) or "cut alone"
    own = ((name, key, value) for name in read for key, value in config.retrievers[name].to_json().items())
    return facts | {f"retrievers.{name}.{key}": value for name, key, value in own if key != "model"}


_THRESHOLD = re.compile(r"(?:threshold|cut)=(-?[0-9.e-]+)")
FIXED = (
    "its layers, their weights, its ladder of thresholds and its intents are fixed in its program; "
    "it can only be given a limit and a threshold"
)


def _cortex_mem(config: SearchConfig) -> Parts:
    """The options of a search: the limit, and the threshold where it is not the program's own.

    Source: Cortex-Mem's document, search parameters (8.1) and usage examples (10).
    """
    ask = find_system(config.name if config.system == "cortex_mem" else "cortex_mem").searching.ask
    if ask is None or config.by_intent:
        raise Loss(FIXED)
    for threshold in (None, *sorted({float(text) for text in _THRESHOLD.findall(str(config.strategy))})):
        if str(ask(threshold, config.limit, False)[0]) == str(config.strategy):
            return {
                "options": {"limit": config.limit} | ({} if threshold is None else {"threshold": threshold})
            }, []
    lost = changes(ask(None, config.limit, False)[0], config.strategy) if config.system == "cortex_mem" else []
    raise Loss(FIXED, *map(str, [] if any(change.name.startswith("strategy") for change in lost) else lost))


_DECLARED = STRICT_JSON.decode(resources.files(__package__).joinpath("memory_systems.json").read_text("utf-8"))
MEMORY_SYSTEMS = [
    Target(name, write=write, intents=name == "cortex_mem", **_DECLARED[name])
    for name, write in zip(_DECLARED, (_echovault, _moltnet, _soleri, _spec_kit, _cortex_mem), strict=True)
]
