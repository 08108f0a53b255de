"""Writing and reading of vault files for the commands."""

from steelyard_eval.vaults.write import index_dataset, reindex_vault, vault_embedder, visible_vault

__all__ = ["index_dataset", "reindex_vault", "vault_embedder", "visible_vault"]
