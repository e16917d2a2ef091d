"""Joins the modules of the page's program into one, for a page without a network."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from importlib.resources import files
from importlib.resources.abc import Traversable

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|let|class)", re.MULTILINE)


def program() -> str:
    """Return the program: every module once, after its imports. No two modules define the same name."""
    sources = {path.name.removesuffix(".js"): path.read_text() for path in _here() if path.name.endswith(".js")}
    order = TopologicalSorter({name: _IMPORT.findall(text) for name, text in sources.items()}).static_order()
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", sources[name])) for name in order)


def style() -> str:
    """Return the page's style sheet."""
    (text,) = (path.read_text() for path in _here() if path.name == "style.css")
    return text


def _here() -> list[Traversable]:
    return sorted(files(__package__).iterdir(), key=lambda path: path.name)
