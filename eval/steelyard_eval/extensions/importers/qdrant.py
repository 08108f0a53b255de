"""Points of a Qdrant server, read page by page over HTTP: ``qdrant://HOST:PORT/COLLECTION`` (``qdrants`` for TLS).

The key comes from QDRANT_API_KEY and is in no address. Nothing is written; what the server changes meanwhile may
be in the answer or not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from steelyard.base.errors import ConfigError, DataError, MachineError, shown
from steelyard.base.inputs import largest
from steelyard.base.secret import Secret
from steelyard.extensions.network.endpoint import Endpoint, EndpointError

SCHEMES = {"qdrant://": "http://", "qdrants://": "https://"}
PAGE = 64
"""Points of a page; of 4096 numbers each it has about 3 MB, and a point may have several vectors."""
LEAST = 2**14
"""Bytes that a page counts as at least: a server that gives a point a page ends, too."""
LONGEST_ID = 100
"""Characters of the id with which the next page begins: a UUID has 36, a number 20."""


def is_server(source: object) -> bool:
    """Whether a source is the address of a collection.

    >>> is_server("qdrant://localhost:6333/mem0"), is_server("mem0")
    (True, False)
    """
    return isinstance(source, str) and source.startswith(tuple(SCHEMES))


def scrolled(address: str) -> Iterator[object]:
    """Every point of a collection, with payload and vectors, in the order of ids.

    Raises ConfigError for an address that names no collection, MachineError where the server cannot be reached or
    refuses, DataError for an answer that is none of Qdrant's, and for more than may be read.
    """
    scheme = next(scheme for scheme in SCHEMES if address.startswith(scheme))
    host, _, collection = address.removeprefix(scheme).partition("/")
    if not host or not collection or "/" in collection:
        raise ConfigError(f"{shown(address)} names no collection; write qdrant://HOST:PORT/COLLECTION")
    key = Secret(os.environ.get("QDRANT_API_KEY", ""))
    server = Endpoint(f"{SCHEMES[scheme]}{host}/collections/{collection}", key, what="the Qdrant server")
    left, offset, seen = largest(), None, set[str]()
    while True:
        text, page = _page(server, address, offset)
        left -= max(text, LEAST)
        if left < 0:
            raise DataError(f"{shown(address)} has more than may be read; raise STEELYARD_LARGEST_FILE_MB")
        yield from page["points"]
        offset = page.get("next_page_offset")
        if offset is None:
            return
        if not isinstance(offset, str | int) or len(str(offset)) > LONGEST_ID or not page["points"]:
            raise DataError(f"{shown(address)} names no next page as Qdrant does; name the server of a collection")
        if str(offset) in seen:
            raise DataError(f"{shown(address)} answers with the same page twice; ask its owner")
        seen.add(str(offset))


def _page(server: Endpoint, address: str, offset: object) -> tuple[int, dict[str, Any]]:
    """The length of an answer, and its page."""
    asked = {"limit": PAGE, "with_payload": True, "with_vector": True}
    try:
        answer = server.ask("/points/scroll", asked if offset is None else {**asked, "offset": offset})
    except EndpointError as error:
        raise MachineError(f"{shown(address)} cannot be read: {error}") from None
    if answer.status != 200:
        raise MachineError(
            f"{shown(address)} answers with status {answer.status}; is the collection there, and the key right?"
        )
    try:
        page = answer.json()["result"]
        if not isinstance(page, dict) or not isinstance(page["points"], list):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise DataError(
            f"{shown(address)} does not answer as Qdrant does; name the server of a collection"
        ) from None
    return len(answer.text), page
