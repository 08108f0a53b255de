"""Stores: where entries, keyword indexes and vectors are kept, and how searches read them."""
