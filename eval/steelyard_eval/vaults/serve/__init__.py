"""A vault as a memory server: tools of the Model Context Protocol, with a log of what was shown and used."""
