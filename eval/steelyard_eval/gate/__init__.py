"""Did a change make search worse? The rule, its power, the baseline, and where people read of it."""
