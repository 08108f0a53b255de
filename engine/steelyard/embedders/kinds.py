"""The embedders a command can name, and how a vault remembers the one it was indexed with."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from steelyard.base.errors import ConfigError, EmbedderError, MachineError, nearest, shown
from steelyard.base.extensions import extension, missing_modules, require
from steelyard.base.files import cache_folder
from steelyard.embedders.cache import CachedEmbedder
from steelyard.embedders.embed import Embedder, Kind, Vectors
from steelyard.embedders.lsa import MODEL as LSA

KINDS = {"minilm-int8": "onnx", "minilm": "minilm", "wordllama": "wordllama", "api": "api"}
"""Kind -> the extra it needs."""
LIGHT = {"minilm": "minilm-int8"}
"""A kind that brings PyTorch -> the same model without it."""
DIMENSIONS = {"minilm-int8": 384, "minilm": 384, "wordllama": 256}
"""How long the vectors of a model of this machine are."""
PROVIDERS = ("voyage", "openai", "cohere", "local")
"""What the name of a model of the kind api begins with, before a slash."""


def installed() -> list[str]:
    """The kinds that run on this machine and can be imported here; the first is the one to try."""
    return [kind for kind, extra in KINDS.items() if kind != "api" and not missing_modules(extra)]


def kind_of(model: str) -> str:
    """The kind of embedder that a model is of; empty for one that none names."""
    kind = "api" if model.partition("/")[0] in PROVIDERS else model
    return kind if kind in KINDS else ""


def indexing_kind(model: str) -> str:
    """What `index --embedder` names for the vectors of a model: lsa, too; empty for a model that none names."""
    return LSA if model.partition(":")[0] == LSA else kind_of(model)


def adding(model: str, vault: str = "", models: Iterable[str] = ()) -> str:
    """The remedies for a vault without the vectors of a model: add them, or choose weights for `models`, its own.

    The other options that these weights were chosen with are not known here. `vault` is its file, if it is one;
    the data set is the folder of that name beside it, as `recommend` names the vault of a folder. Empty for a
    model that no kind names.
    """
    kind, file = indexing_kind(model), Path(vault)
    if not kind:
        return ""
    known = bool(vault) and file.is_file()
    data = str(file.with_suffix("")) if known and file.with_suffix("").is_dir() else "DATASET"
    add = shlex.join(["steelyard", "index", data, vault if known else "VAULT", "--embedder", kind])
    own = min(filter(None, map(indexing_kind, models)), default="")
    anew = f", or run the recommend that wrote these weights again, with --embedder {own}, whose vectors it has"
    return f"; add them with {add}{anew if own else ''}"


class UnavailableEmbedder:
    """Stands for an embedder that cannot be asked here and now: `embed` raises EmbedderError with the reason."""

    recipe: str | None = None

    def __init__(self, model: str, reason: str) -> None:
        self.model, self._reason = model, reason

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """Raises EmbedderError."""
        raise EmbedderError(self._reason)

    def warm(self) -> bool:
        """Never."""
        return False


def open_embedder(kind: str, environ: Mapping[str, str]) -> CachedEmbedder:
    """An embedder by kind, behind the cache on disk.

    Raises ConfigError for an unknown kind or incomplete settings, MachineError for a missing extra.
    """
    if kind not in KINDS:
        raise ConfigError(f"unknown embedder {shown(kind)}{nearest(kind, KINDS)}")
    require(KINDS[kind], f"the embedder {kind}")
    inner = extension("models").opened(kind, environ)
    return CachedEmbedder(inner, cache_folder(environ) / "vectors.db", inner.identity)


def remembered(embedder: CachedEmbedder) -> tuple[str, dict[str, object]]:
    """Kind and settings by which `restore` makes the embedder again; never the key."""
    settings = getattr(embedder.inner, "settings", None)
    return (embedder.inner.model, {}) if settings is None else ("api", settings.to_json())


def restore(kind: str, settings: Mapping[str, Any], environ: Mapping[str, str]) -> Embedder:
    """The embedder that a vault remembers, for live search: without the cache, and less patient.

    What cannot be asked becomes an UnavailableEmbedder: search then answers by keywords. Raises ConfigError for a
    kind this version does not know.
    """
    if kind not in KINDS:
        raise ConfigError(
            f"the vault was indexed with the embedder {shown(kind)}, unknown here; upgrade Steelyard"
        )
    known = settings if isinstance(settings, Mapping) else {}  # whatever JSON the file held
    named = kind if kind != "api" else f"{known.get('provider', '')}/{known.get('model', '')}"
    try:
        return cast(Embedder, extension("models").restored(kind, known, environ))
    except (ConfigError, MachineError) as error:
        return UnavailableEmbedder(named, str(error))
