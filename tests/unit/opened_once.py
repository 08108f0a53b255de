"""Data sets that are indexed and searched once a process, for tests of what follows from their lists."""

from steelyard_eval.recording.workspace import Workspace

OPENED, OPEN = {}, Workspace.open.__func__
PARTS = ("sha256", "queries", "vectors_sha256", "language", "as_of", "intents", "recipe", "embedder", "chosen")
"""All that lists depend on, and what they are recorded with."""


def opened(cls, dataset, embedder="auto", vault=None, jobs=1):
    """`Workspace.open` with the index and the lists of another data set that differs in labels alone."""
    if vault is not None or jobs != 1:
        return OPEN(cls, dataset, embedder, vault, jobs)
    held = (*dataset.vectors, *dataset.query_vectors)
    key = (embedder, held, repr(dataset.entries), *(getattr(dataset, name) for name in PARTS))
    space = OPENED.get(key) or OPENED.setdefault(key, OPEN(cls, dataset, embedder))
    return space.about(lambda _: dataset)


def open_once(patch):
    """For what neither counts searches nor asks whether two of them agree."""
    patch.setattr(Workspace, "open", classmethod(opened))
