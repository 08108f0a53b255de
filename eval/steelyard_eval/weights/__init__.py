"""The search for weights over one recording: fast for many of them, and exact along lines."""
