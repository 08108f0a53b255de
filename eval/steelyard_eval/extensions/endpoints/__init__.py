"""Contenders at an address: of an HTTP endpoint, and of a tool of an MCP server."""

from steelyard_eval.common.configurations import MCP_PREFIX
from steelyard_eval.extensions.endpoints.http_search import HttpSearch, holds_key
from steelyard_eval.extensions.endpoints.mcp_search import McpSearch

__all__ = ["HttpSearch", "McpSearch", "endpoint", "holds_key"]


def endpoint(address: str) -> HttpSearch | McpSearch:
    """What an address names; ConfigError for one that cannot be read."""
    return McpSearch.of(address) if address.startswith(MCP_PREFIX) else HttpSearch.of(address)
