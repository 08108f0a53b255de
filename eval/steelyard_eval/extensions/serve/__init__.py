"""A vault as a memory server: tools of the Model Context Protocol, with a log of what was shown and used."""

from steelyard_eval.extensions.serve.caller import ServerLog
from steelyard_eval.extensions.serve.server import Served, run

__all__ = ["Served", "ServerLog", "run"]
