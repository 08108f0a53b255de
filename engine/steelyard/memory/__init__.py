"""What is asked and what is found: entries, queries, filters, and the texts made of them."""
