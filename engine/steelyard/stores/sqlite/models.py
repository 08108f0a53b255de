"""Models fitted on a vault, as plain arrays (never pickled)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from steelyard.base.files import STRICT_JSON
from steelyard.stores.sqlite.damage import damaged
from steelyard.stores.sqlite.file import VaultFile


class ModelTable(VaultFile):
    """Models by name: what kind they are, their settings and arrays."""

    def save_model(
        self, name: str, kind: str, settings: Mapping[str, object], arrays: Mapping[str, bytes]
    ) -> None:
        """Store a fitted model in one transaction, replacing one of the same name.

        The first one stored is the vault's own: the one it is searched with unless another is named.
        """
        with self.transaction():
            self._db.execute(
                "INSERT OR IGNORE INTO meta SELECT 'model', coalesce((SELECT min(name) FROM models), ?)", (name,)
            )
            self._db.execute("DELETE FROM model_arrays WHERE model = ?", (name,))
            self._db.execute(
                "INSERT OR REPLACE INTO models VALUES(?, ?, ?)", (name, kind, json.dumps(settings, sort_keys=True))
            )
            self._db.executemany(
                "INSERT INTO model_arrays VALUES(?, ?, ?)", ((name, key, data) for key, data in arrays.items())
            )

    def models(self) -> list[str]:
        """Names of the stored models: the vault's own first, the others ascending."""
        sql = "SELECT name FROM models ORDER BY name IS NOT (SELECT value FROM meta WHERE key = 'model'), name"
        return [name for (name,) in self._db.execute(sql)]

    def drop_models(self) -> None:
        """Forget all stored models."""
        with self.transaction():
            self._db.execute("DELETE FROM model_arrays")
            self._db.execute("DELETE FROM models")
            self._db.execute("DELETE FROM meta WHERE key = 'model'")

    def load_model(self, name: str) -> tuple[str, dict[str, Any], dict[str, bytes]] | None:
        """Kind, settings and arrays of a stored model, None when there is none of this name."""
        row = self._db.execute("SELECT kind, settings FROM models WHERE name = ?", (name,)).fetchone()
        if row is None:
            return None
        arrays = dict(self._db.execute("SELECT name, data FROM model_arrays WHERE model = ?", (name,)))
        try:
            settings = STRICT_JSON.decode(row[1])
        except (ValueError, TypeError, RecursionError) as error:
            raise damaged(self.path, error) from None
        if not isinstance(settings, dict):
            raise damaged(self.path, f"the settings of model {name!r} are not an object")
        return row[0], settings, arrays
