"""A vault file for each tenant, so that no search of one tenant can read what another stored."""

from __future__ import annotations

import re
from pathlib import Path

from steelyard.base.errors import ConfigError, shown

NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")
"""Lower case, so that no two tenants share a file where file names ignore case."""


def vault_of(folder: str | Path, tenant: str) -> Path:
    """The file ``cortex-mem-{tenant}.db`` in the folder of all vaults.

    Raises ConfigError for a name that is not 1 to 64 of a-z, 0-9, hyphen and underscore, beginning and ending with
    a letter or a digit; and where that file is a link, hard or soft, which might lead to another tenant's.
    """
    if not NAME.fullmatch(tenant):
        raise ConfigError(
            f"tenant {shown(tenant)} cannot be a name; write 1 to 64 of a-z, 0-9, - and _, "
            "the first and the last a letter or a digit"
        )
    path = Path(folder) / f"cortex-mem-{tenant}.db"
    if path.is_symlink() or (path.exists() and path.stat().st_nlink > 1):
        raise ConfigError(f"{shown(str(path))} is a link; a tenant's vault is a file of its own")
    return path
