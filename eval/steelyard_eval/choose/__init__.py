"""Which strategy and which weights: what is known of the candidates, the rule, and what blocks it."""
