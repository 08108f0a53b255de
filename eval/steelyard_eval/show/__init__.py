"""How results are shown: text, figures and reports."""
