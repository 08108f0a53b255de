"""A vault as a memory server: tools of the Model Context Protocol, with a log of what was shown and used."""

from steelyard_eval.extensions.serve.caller import ServerLog
from steelyard_eval.extensions.serve.faces import find_face
from steelyard_eval.extensions.serve.server import Served, run

__all__ = ["Served", "ServerLog", "find_face", "run"]
