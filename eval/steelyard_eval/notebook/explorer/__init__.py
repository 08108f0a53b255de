"""The live explorer: weights and parameters of a strategy under the hand, measured while they move.

`exploration.Exploration` is all of it in Python; `widget.Explorer` draws it in a notebook.
"""
