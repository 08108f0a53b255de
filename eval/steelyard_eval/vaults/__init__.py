"""Vault files, as the commands write and read them."""

from steelyard_eval.vaults.write import index_dataset, reindex_vault, vault_embedder, visible_vault

__all__ = ["index_dataset", "reindex_vault", "vault_embedder", "visible_vault"]
