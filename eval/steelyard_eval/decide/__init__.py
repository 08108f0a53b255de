"""One decision for every command that chooses: the rule, what it knows beforehand, and what it promises."""
