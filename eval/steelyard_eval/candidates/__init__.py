"""What is tried, and what it scores: every family and system under many weights, on every labelled query."""
