"""What the use of a memory left behind: logs of other programs, read as searches and as what followed them."""
