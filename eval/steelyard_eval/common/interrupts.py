"""The message after Ctrl-C, and how to recognise Ctrl-C behind another error."""

from __future__ import annotations

INTERRUPTED = "interrupted; what was committed is kept, run the command again to go on"


def was_interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C is behind an error: extensions written in C raise SystemError where it falls into them."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, KeyboardInterrupt):
        behind = behind.__cause__ or behind.__context__
    return behind is not None
