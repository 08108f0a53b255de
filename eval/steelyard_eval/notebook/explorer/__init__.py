"""The live explorer: weights and parameters of a strategy are moved by hand and measured at once.

`exploration.Exploration` is all of it in Python; `widget.Explorer` draws it in a notebook.
"""
