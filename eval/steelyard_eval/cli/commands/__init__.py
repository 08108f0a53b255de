"""The commands of the command line: what reads and writes vaults, and what works on data sets."""
