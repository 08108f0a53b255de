"""What is worked with in a notebook: the explorer and the desk of a judge."""
