"""Views of a result: each reads a Result and nothing else, decides nothing, and holds no sentence."""
