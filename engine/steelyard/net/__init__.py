"""The way to the network: bounded exchanges, keys that do not print themselves, and language models."""
