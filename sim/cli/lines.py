"""Lines of what a command prints."""

from __future__ import annotations

import textwrap


def laid_out(lines: list[str]) -> str:
    """Wrap lines into 80 columns, what follows below what a line says."""
    wrapped = (textwrap.wrap(line, 80, subsequent_indent=" " * 17) or [""] for line in lines)
    return "\n".join(part for parts in wrapped for part in parts)
