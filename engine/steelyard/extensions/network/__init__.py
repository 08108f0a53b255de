"""The one way to the network: an address, or a language model, is asked within bounds of time and size."""

from __future__ import annotations

from steelyard.extensions.network.chat import Chat, ChatEndpoint, chat_of
from steelyard.extensions.network.endpoint import Endpoint, EndpointError, Response

__all__ = ["Chat", "ChatEndpoint", "Endpoint", "EndpointError", "Response", "chat_of"]
