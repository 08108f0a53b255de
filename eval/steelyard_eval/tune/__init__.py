"""Which strategy and which weights? Candidates before labels, then one rule: ship, try or keep."""
