"""What `mkdocs build` adds to the pages in docs/: a lesson, the changelog, files from outside docs/, and diagrams.

The lesson is what `fairwall lesson` plays when the site is built, and the first thing that its first page shows.

A file that a page links to outside docs/ goes along. Material
would fetch Mermaid from the network, if a page brought none: here a page with a diagram brings it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
MERMAID = ROOT / "scripts/site/node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js"
BESIDE = (
    "deploy/policy.toml",
    "sim/datasets/README.md",
    "tests/second_client/ask.js",
    "tests/second_client/audit_client.js",
    "tests/second_server/server.py",
)
"""Files outside docs/ that pages link to."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and files that lie elsewhere."""
    if not MERMAID.exists():
        raise PluginError("Mermaid is missing, `make site` installs it")
    changes = (ROOT / "CHANGELOG.md").read_text().replace("](docs/", "](")
    files.append(File.generated(config, "changelog.md", content=changes))
    for path in BESIDE:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    files.append(File.generated(config, "assets/mermaid.js", abs_src_path=str(MERMAID)))
    with tempfile.TemporaryDirectory(prefix="fairwall-site-") as place:
        subprocess.run([sys.executable, "-I", "-m", "sim", "lesson"], cwd=place, check=True, capture_output=True)
        files.append(File.generated(config, "lesson.html", content=Path(place, "lesson.html").read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links out of docs/ to where the files lie in the site, and begin the first page with the lesson."""
    if page.file.src_uri == "index.md":
        markdown = markdown.replace("\n\n", "\n\n**See it move: [who is found out?](lesson.html)**\n\n", 1)
    return markdown.replace("](../", "](")


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Load Mermaid where there is a diagram, before the theme's own script looks for it; refuse what lies elsewhere."""
    if 'class="mermaid"' in output:
        up = "../" * page.url.count("/")
        output = output.replace("</head>", f'<script src="{up}assets/mermaid.js"></script>\n</head>', 1)
    loaded = re.findall(
        r"<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)", output
    )
    if loaded:
        raise PluginError(f"{page.url} would load {loaded[0]}: the site must need no other")
    return output
