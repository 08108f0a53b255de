"""Embedders: LSA and recorded vectors are here, models of this machine and of providers in an extension."""
