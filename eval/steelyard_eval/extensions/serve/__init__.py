"""A vault as a memory server: tools of the Model Context Protocol, with a log of what was shown and used."""

from steelyard_eval.extensions.serve.referee_tools import with_referee
from steelyard_eval.extensions.serve.server import Served, run
from steelyard_eval.extensions.serve.tool_call import ServerLog
from steelyard_eval.extensions.serve.tool_sets import find_face

__all__ = ["Served", "ServerLog", "find_face", "run", "with_referee"]
