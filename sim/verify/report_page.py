"""Compares ``report.html`` with the page that follows from the run's other files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path

import fairwall
from fairwall.errors import UserError
from fairwall.rpc.kernels import in_use
from sim.runs.page import rendered
from sim.transcripts.files import Transcript
from sim.transcripts.findings import UNFIT
from sim.verify.finding import VerifyFinding
from sim.verify.run_files import result_of

_PAGE = "report.html"
_FIGURE = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
_DRAWN_WITH = re.compile(r"matplotlib ([\w.+]+)")
_CONTEXT = 24


def changed_page(folder: Path, scripts: Sequence[Transcript], notes: list[str]) -> Iterator[VerifyFinding]:
    """Rewrite the report, and compare: its text always, its figures if the same software drew them.

    The referee's process drew the figures, and its transcript names the software. ``notes`` gets what could not be
    compared.
    """
    result = result_of(folder)
    if result is None or not result.get("files"):
        return  # broken off, which is another finding
    path = folder / _PAGE
    if not path.exists():
        notes.append(f"not checked: {_PAGE}, which is not there")
        return
    if result.get("version") != fairwall.__version__:
        by = f"fairwall {result.get('version')} wrote, and this is {fairwall.__version__}"
        notes.append(f"not checked: {_PAGE}, which {by}")
        return
    try:
        again = rendered(folder)
    except (*UNFIT, AttributeError, UserError) as error:
        notes.append(f"not checked: {_PAGE}: no report can be made of its files: {error!r}")
        return
    page = path.read_bytes().decode("utf-8", "replace")
    if page == again:
        return
    drawn = _DRAWN_WITH.search(page)
    was, now = drawn[1] if drawn else "another version", version("matplotlib")
    page = _DRAWN_WITH.sub(f"matplotlib {now}", page)
    text, text_again = (_FIGURE.sub("<svg>", one) for one in (page, again))
    if text != text_again:
        yield VerifyFinding(
            "file", _PAGE, f"is not what follows from trials.jsonl and result.json: {_unlike(text, text_again)}"
        )
        return
    changes = [f"matplotlib {was}, not {now}"] * (was != now)
    drawers = [script for script in scripts if script.party == "referee"]
    told = [script.numerics | {"NumPy": script.versions.get("numpy", "unknown")} for script in drawers]
    for name, here in (in_use() | {"NumPy": version("numpy")}).items():
        recorded = {one[name] for one in told if name in one}
        if recorded - {here}:
            changes.append(f"{name} {', '.join(sorted(recorded))}, not {here}")
    if not all(script.numerics for script in drawers):
        changes.append("kernels that were not recorded")
    if changes:
        notes.append(
            f"not checked: the figures of {_PAGE}, which were drawn with {'; '.join(changes)}; its text is well"
        )
    else:
        yield VerifyFinding(
            "file", _PAGE, f"has a figure that does not follow from trials.jsonl: {_unlike(page, again)}"
        )


def _unlike(page: str, again: str) -> str:
    """Return the first difference of two texts."""
    for number, (line, other) in enumerate(zip_longest(page.splitlines(), again.splitlines(), fillvalue=""), start=1):
        if line != other:
            at = next((at for at, pair in enumerate(zip(line, other, strict=False)) if pair[0] != pair[1]), 0)
            one, two = (text[max(0, at - _CONTEXT) : at + _CONTEXT].strip() for text in (line, other))
            return f"line {number} has {one!r}, and what follows is {two!r}"
    return "in how its lines end"
