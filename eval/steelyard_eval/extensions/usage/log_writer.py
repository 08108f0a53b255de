"""Writes searches and acts as lines of a feedback log, without any text that should stay private.

Every text in such a line is ours, a keyed hash, or an id or a value that the data set has: what a transcript holds
beside these is not written, were it in the place of an id. Queries are written where they are asked to be kept.
"""

import os
import secrets
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from steelyard.base.errors import ConfigError, MachineError
from steelyard.base.fields import LIST_FIELDS, format_time
from steelyard.base.files import read_text, write_text
from steelyard.config import policy_of, ranking_of
from steelyard.extensions.secrets import holds_secret
from steelyard.feedback import ACTIONS, LONGEST_TEXT, SCHEMA_VERSION
from steelyard.memory.query import Filters
from steelyard.systems import SYSTEMS, find_system
from steelyard_eval.common.process import state_folder
from steelyard_eval.datasets import Dataset
from steelyard_eval.extensions.usage.session import Corpus, Searched
from steelyard_eval.extensions.usage.tool_names import FORMS
from steelyard_eval.extensions.usage.what_followed import STRENGTH, SearchOutcome
from steelyard_eval.learn.first_ten import PLACES

_BASES = {name.partition(":")[0] for name in SYSTEMS}
KEY = "log.key"  # The file with this user's key: without it nobody can try texts against the hashes of a log
REJECTION_REASONS = UNREADABLE, EMPTY, FOREIGN, TIMELESS = tuple(map(str, FORMS["rejected"]))
"""Why a search is left out: its answer, its list, its entries or its filter, its time."""
Line = dict[str, Any]


class Writer:
    """Makes lines of a data set's searches.

    `policies` are the records of the configurations that they name, `texts` those of queries by their keys, which
    stay in memory.
    """

    def __init__(self, dataset: Dataset, corpus: Corpus, kind: str, key: bytes, keep: bool) -> None:
        self._corpus, self._kind, self._key, self._keep = corpus, kind, key, keep
        self._system = dataset.system
        texts = Counter(query.text for query in dataset.queries)
        self._queries: dict[tuple[str, Filters | None], str] = {
            (query.text, None): query.id for query in dataset.queries if texts[query.text] == 1
        }
        self._queries |= {(query.text, query.filters): query.id for query in dataset.queries}
        self._values = {
            name: {getattr(entry, name) for entry in dataset.entries}
            for name in ("project", "type", "domain", "severity", "importance_tier", "context_type")
        }
        self._values["tags"] = {tag for entry in dataset.entries for tag in entry.tags}
        self.policies: dict[str, Line] = {}
        filtered = ((query.text, filters) for query in dataset.queries for filters in (query.filters, None))
        self.texts = {self.query_key(text, filters): text for text, filters in filtered}
        self._engines: dict[tuple[str, int | None], str] = {}

    def impression(self, call: SearchOutcome, client: str, simulated: bool = False) -> Line | str:
        """The line of a search, or in words why it has none: `REJECTION_REASONS` lists them."""
        search = call.search
        if search.hits is None:
            return UNREADABLE
        if not search.hits:
            return EMPTY
        hits, names = self._hits(search)
        narrowed = self._narrowed(search.narrowed or {})
        if not names or narrowed is None:
            return FOREIGN
        if search.time is None:
            return TIMELESS
        filters = None if search.narrowed is None else Filters.of(narrowed)
        mark = self.hashed("search", search.key)
        line: Line = {
            "schema_version": SCHEMA_VERSION,
            "timestamp": format_time(search.time),
            "query_id": self._queries.get((search.query, filters)) or f"use-{mark}",
            "query_key": self.query_key(search.query, filters),
            "search": mark,
            "client_id": self.hashed("client", client),
            "policy": self._policy(search.engine, search.limit),
            **({"simulated": True} if simulated else {}),
            **({} if filters is None else {"filter": narrowed}),
            "hits": hits,
            "actions": _actions(call, names),
        }
        if self._keep and not holds_secret(search.query):
            line["user_query"] = search.query[:LONGEST_TEXT]
        self.texts[line["query_key"]] = search.query
        return line

    def hashed(self, *parts: str) -> str:
        """A keyed hash of some texts, 16 hexadecimal digits."""
        text = "\0".join(parts).encode(errors="surrogatepass")
        return blake2b(text, key=self._key, digest_size=8).hexdigest()

    def query_key(self, text: str, filters: Filters | None) -> str:
        """What stands for a query with its filters; None where they are not known."""
        return self.hashed("query", text, repr(filters)) if text else ""

    def _hits(self, search: Searched) -> tuple[list[Line], dict[str, str]]:
        """The list as the log has it, and the data set's ids by the names that the search gave."""
        hits, by_id = list[Line](), dict[str, str]()
        for place, name in enumerate(search.hits or (), 1):
            id_ = self._corpus.names.named(name) or f"unknown-{place}"
            if id_ not in by_id:
                by_id[id_] = name
                hits.append({"object_id": id_, "position": place})
        return hits, {name: id_ for id_, name in by_id.items() if id_ in self._corpus}

    def _narrowed(self, asked: Mapping[str, object]) -> Line | None:
        narrowed: Line = {}
        for name, value in asked.items():
            many = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
            if not many or not set(many) <= self._values[name]:
                return None
            narrowed[name] = many if len(many) > 1 or name in LIST_FIELDS else many[0]
        return narrowed

    def _policy(self, engine: str, limit: int | None) -> str:
        """The policy of what answered: a system's configuration, or a name of ours for another engine.

        A system looks the deeper the more results are asked for; its lists are told apart by that alone.
        """
        limit = limit if engine in _BASES else None
        if (engine, limit) in self._engines:
            return self._engines[engine, limit]
        system = self._system if engine and self._system.partition(":")[0] == engine else engine
        name = f"{self._kind}-{sum(other not in _BASES for other, _ in self._engines) + 1}"
        if engine in _BASES:
            with suppress(ConfigError):
                # as deep as this limit asks, with places enough to compare lists by
                config = find_system(system).config(limit).with_limit(PLACES)
                name = policy_of(config)
                record = {"schema_version": SCHEMA_VERSION, "configuration": ranking_of(config), "policy": name}
                self.policies[name] = record
        self._engines[engine, limit] = name
        return name


def _actions(call: SearchOutcome, names: Mapping[str, str]) -> list[Line]:
    acts = [(names[name], action) for name, action in call.acts.items() if name in names and action in ACTIONS]
    if not acts and call.useless:
        return [{"action_name": "none_useful", "strength": STRENGTH["none_useful"]}]
    return [
        {"object_id": id_, "action_name": action, "strength": STRENGTH.get(action, "strong")}
        for id_, action in sorted(acts)
    ]


def own_key(environ: Mapping[str, str] = os.environ) -> bytes:
    """The user's key for hashes, made at its first use; MachineError where it cannot be kept."""
    place = state_folder(environ) / KEY
    try:
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            write_text(place, secrets.token_hex(32), private=True)
        return bytes.fromhex(read_text(place).strip())[:64]
    except (OSError, ValueError) as error:
        raise MachineError(
            f"the key {place} cannot be kept or read ({error}); remove it, or set XDG_STATE_HOME"
        ) from None
