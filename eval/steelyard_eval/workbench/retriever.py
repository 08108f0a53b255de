"""A configuration over a vault, as a retriever of LangChain, LlamaIndex or Haystack.

Sources: `BaseRetriever` in langchain_core.retrievers (langchain-core 1.8) and in llama_index.core.retrievers
(llama-index-core 0.14); `haystack.component` (haystack-ai 3.4), which reads the types of `run` as they stand, so
that annotations are not postponed here.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.base.errors import ConfigError, MachineError, nearest, quote
from steelyard.config import SearchConfig
from steelyard.memory.text import content
from steelyard.stores.sqlite import Vault
from steelyard.systems.base import record_of
from steelyard_eval.vaults.read import OpenVault, RankedBy

Found = list[tuple[str, str, float | None, dict[str, Any]]]
"""Id, text, score and metadata of each result, best first."""
Find = Callable[[str, int | None], Found]  # from a text and a number of results, None for the usual one


def as_retriever(
    weights: str | Path | SearchConfig, vault: str | Path | Vault, framework: str, *, limit: int | None = None
) -> Any:  # noqa: ANN401 -- a class of a package that may be absent
    """Return a retriever of a framework that searches a vault; threads may share it.

    A document has the id, text and score of an entry. Its metadata are the other fields, such as the title, with
    times as ISO 8601. Documents of LangChain have no score, so their metadata have it.
    Raises ConfigError for an unknown framework; MachineError, naming the package, where that is not installed.

    Parameters
    ----------
    weights: A weights file, a system or a strategy.
    vault: What is searched; a vault that is opened here stays open.
    framework: langchain, llama_index or haystack.
    limit: Number of results (default: the configuration's); `top_k` of Haystack's `run` replaces it.
    """
    if framework not in FRAMEWORKS:
        valid = ", ".join(FRAMEWORKS)
        raise ConfigError(f"unknown framework {quote(framework)}{nearest(framework, FRAMEWORKS)}; valid: {valid}")
    package, make = FRAMEWORKS[framework]
    by = RankedBy("", "", weights) if isinstance(weights, SearchConfig) else RankedBy.of(str(weights))
    opened = OpenVault(str(vault) if isinstance(vault, Path) else vault, (), by, None, None)

    def find(text: str, most: int | None) -> Found:
        with opened.snapshot():
            hits = opened.searcher(limit if most is None else most).search(text).hits
        found = [(hit.entry, hit.score, record_of(replace(hit.entry, text=""))) for hit in hits]
        return [(entry.id, entry.text or content(entry), score, fields) for entry, score, fields in found]

    try:
        return make(find)
    except ModuleNotFoundError:
        raise MachineError(
            f"a retriever of {framework} needs {package}, not installed here; run pip install {package}"
        ) from None


def _langchain(find: Find) -> object:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class SteelyardRetriever(BaseRetriever):  # type: ignore[misc]  # the package may be absent
        def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
            return [
                Document(id=id_, page_content=text, metadata=fields | {"score": score})
                for id_, text, score, fields in find(query, None)
            ]

    return SteelyardRetriever()


def _llama_index(find: Find) -> object:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    class SteelyardRetriever(BaseRetriever):  # type: ignore[misc]  # the package may be absent
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return [
                NodeWithScore(node=TextNode(id_=id_, text=text, metadata=fields), score=score)
                for id_, text, score, fields in find(query_bundle.query_str, None)
            ]

    return SteelyardRetriever()


def _haystack(find: Find) -> object:
    from haystack import Document, component

    @component
    class SteelyardRetriever:
        @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]  # as above
        def run(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
            found = find(query, top_k)
            documents = [Document(id=i, content=text, score=score, meta=own) for i, text, score, own in found]
            return {"documents": documents}

    return SteelyardRetriever()


FRAMEWORKS = {
    "langchain": ("langchain-core", _langchain),
    "llama_index": ("llama-index-core", _llama_index),
    "haystack": ("haystack-ai", _haystack),
}
