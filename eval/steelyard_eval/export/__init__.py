"""Translates a tuned configuration for other systems: ``export(config, "opensearch")``.

To add a target, write a `Target` and list it here.
"""

import re

from steelyard.base.errors import ConfigError, MachineError, closest, quote
from steelyard.config import SearchConfig
from steelyard.embedders.embed import LSA
from steelyard.finish import AtLeast, Cut, Floor, Mmr
from steelyard.memory.query import unchanged
from steelyard.retrievers import EMBEDDING
from steelyard.retrievers.kinds import RetrieverConfig
from steelyard.stores.base import COSINE
from steelyard.systems import find_system
from steelyard_eval.export.base import Export, Loss, Target
from steelyard_eval.export.engines import ELASTICSEARCH, LANCEDB, OPENSEARCH, QDRANT, WEAVIATE
from steelyard_eval.export.memory_systems import MEMORY_SYSTEMS
from steelyard_eval.export.pgvector import PGVECTOR
from steelyard_eval.export.python_file import PYTHON
from steelyard_eval.export.vespa import VESPA

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        *MEMORY_SYSTEMS,
        *(OPENSEARCH, ELASTICSEARCH, VESPA, WEAVIATE, QDRANT, LANCEDB, PGVECTOR, PYTHON),
    )
}

ELSEWHERE = dict.fromkeys(("minilm", "minilm-int8"), "sentence-transformers/all-MiniLM-L6-v2")
"""What others call our models; the int8 one has nearly the same directions."""

__all__ = ["TARGETS", "Export", "Loss", "Target", "export", "say", "unsupported"]


def export(config: SearchConfig, to: str) -> Export:
    """Translate a configuration for a target.

    Raises ConfigError for an unknown target, and for a strategy that the target cannot express; the message lists
    everything that would be lost, the search for what can be exported, and a strategy that can.

    Parameters
    ----------
    config: What to export.
    to: The name of the target, a key of `TARGETS`.
    """
    if to not in TARGETS:
        close = closest(to, TARGETS, 0.85)  # of so few names: `solr` is no misspelt `soleri`
        raise ConfigError(f"there is no export for {quote(to)}, only for {', '.join(TARGETS)}{close}")
    try:
        made = say(config, TARGETS[to])
        made.parts  # noqa: B018 -- a loss may be found only while the document is written
        return made
    except Loss as lost:
        strategy = quote(str(config.effective), 200)
        raise ConfigError(
            f"strategy {strategy} cannot be expressed in {to}: {lost}. To choose what {to} can run: steelyard "
            f"recommend DATASET --for {to} --out {to}.json; by hand, {TARGETS[to].says}"
        ) from None


def unsupported(target: Target, config: SearchConfig) -> str:
    """Why a target cannot be given this search, or what writes it is not installed; empty where it can."""
    try:
        say(config, target)
    except (Loss, MachineError) as why:
        return str(why)
    return ""


def say(config: SearchConfig, target: Target) -> Export:
    """Translate a configuration; Lost when the target cannot express the strategy."""
    strategy = config.effective
    if strategy.by_query and not target.intents:
        raise Loss(strategy.describe().beyond)
    native, asked = target.name == config.system, config.retrievers.get("vector", RetrieverConfig())
    for stage in () if target.complete else config.finish:
        why = ""
        if isinstance(stage, Floor | AtLeast):
            why = f"compares scores that {target.name} does not compute, so it would answer what this silences"
        elif isinstance(stage, Mmr) or (stage.RESCORES and not native):
            why = f"orders the list anew, which {target.name} does not do here"
        if why:
            raise Loss(f"{stage} {why}; take it out of finish to export the ranking alone")
    own = native or target.complete
    if not own and "vector" in strategy.signals:
        if asked.similarity != COSINE:
            raise Loss(f"vector compared by {asked.similarity}: only cosine can be exported")
        if asked.parameters.get("lift"):
            raise Loss("vector.lift adds importance to cosines, which a list of vectors there has not")
    parts, notes = target.write(config)
    after = [] if own else [str(stage) for stage in config.finish if stage != Cut(config.limit)]
    last = [f"left out, since it acts on the finished list: {', '.join(after)}"] if after else []
    first = (*vector_notes(config), *([] if native else _rewriting(config)))
    return Export(target, str(strategy), parts, (*first, *notes, *last))


def _rewriting(config: SearchConfig) -> list[str]:
    """A note where the system searches for more than the query says; its lists are those of another query."""
    if not config.rewrite or find_system(config.name).reading.rewrite is unchanged:
        return []
    return [f"{config.system} adds words to a query (synonyms, acronyms, typos); what is written here does not"]


def vector_notes(config: SearchConfig) -> list[str]:
    """A note on the model whose vectors the weights were tuned with: those of another have other scores."""
    model = config.retrievers["vector"].model if "vector" in config.retrievers else ""
    if not model or not config.effective.signals & EMBEDDING:
        return []
    again = "tune again with the vectors of the model that you use there"
    if model == LSA:
        return [f"lsa exists only in Steelyard, so {again}"]
    name = model if re.fullmatch(r"[A-Za-z0-9._/:-]+", model) else "one model"  # it may be anybody's file
    name += f" ({ELSEWHERE[model]})" if model in ELSEWHERE else ""
    return [f"tuned with the vectors of {name}, so use that model there, or {again}"]
