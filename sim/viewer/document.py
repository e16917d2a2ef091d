"""The HTML file of a page.

It holds its style, program and data, and may fetch nothing: its content security policy admits only that style and that
program, by their digests. Data are in elements that no browser executes, and are shown as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import fairwall
from sim.report.page import digest

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
    return sorted(files("sim.viewer.browser").iterdir(), key=lambda path: path.name)


def document(index: Mapping[str, Any], blocks: Sequence[str]) -> str:
    """Return the file: an index that the page shows at first, and the rest in blocks of base64."""
    text, script = style(), program()
    policy = (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(text)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    # No "<" in the data: nothing in it can end the element that holds it.
    data = json.dumps(index, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    held = "".join(f'<script type="text/plain" id="block-{n}">{block}</script>\n' for n, block in enumerate(blocks))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="fairwall {fairwall.__version__}">
<title>{escape(index["run"])}</title>
<style>{text}</style>
</head>
<body>
<noscript>This page replays a recorded run, and needs JavaScript, which is in the page itself.</noscript>
<div id="page"></div>
<script type="application/json" id="index">{data}</script>
{held}<script type="module">{script}</script>
</body>
</html>
"""
