"""The execution of a claim's test: its cost, and the evidence."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fairwall
from fairwall.errors import UserError
from sim.papers import claim_ledger
from sim.papers.claim import ClaimTest, PaperClaim
from sim.papers.claim_ledger import ClaimEvidence, ClaimStatus, function, verdict
from sim.papers.values import ValueRefused
from sim.report.notation import plural

if TYPE_CHECKING:
    from sim.scenarios.sweep import Sweep

Lines = Sequence[Mapping[str, Any]]
Files = Mapping[str, Path]
"""The user's files, by their name in a test."""


@dataclass(frozen=True)
class Measured:
    """The lines of a source, how they were made, the digests of its data, and the seconds taken."""

    lines: Lines
    source: Mapping[str, Any]
    data: Mapping[str, str]
    seconds: float


def cost(entry: ClaimStatus) -> str:
    """Return in one line the time and data that a claim's test needs."""
    test = _tested(entry.claim)
    seconds = None if entry.evidence is None else entry.evidence.seconds
    if seconds is None:
        time_taken = "time not known: it has not been measured yet"
    else:
        time_taken = "less than a minute" if seconds < 60 else f"about {seconds / 60:.0f} min"
    what = test.check or test.measure or test.table
    if test.play is not None:
        sweep = scenario(test, dict.fromkeys(test.data, Path("FILE")))
        trials = sum(cell.scenario.scenario.trials for cell in sweep.cells)
        what = f"{test.play}, {plural(trials, 'trial')} in {plural(len(sweep.cells), 'cell')}"
    needs = ", ".join(f"your {name}" for name in test.data) or "no file of yours"
    return f"{what}; {time_taken}; {needs}"


def require(test: ClaimTest, files: Files) -> None:
    """Raise UserError if one of a test's files is not named, or does not exist."""
    for name in test.data:
        if name not in files:
            raise UserError(f"--data {name}=FILE: this test needs a file of yours")
        if not files[name].is_file():
            raise UserError(f"--data {name}={files[name]}: no such file")


def measure(test: ClaimTest, files: Files, on_progress: Callable[[int], None] = lambda _: None) -> Measured:
    """Play a test's scenario, or read its table; UserError if a file is missing or unreadable, or a run's error."""
    require(test, files)
    began = time.monotonic()
    data = {name: claim_ledger.file_digest(files[name]) for name in test.data}
    source: dict[str, Any]
    if test.play is not None:
        sweep = scenario(test, files)
        lines = _played(sweep, on_progress)
        source = {"play": test.play, "set": test.set, "seed": sweep.scenario.scenario.seed, "scenario": sweep.digest}
        source["trials"] = sweep.scenario.scenario.trials
        data |= _shipped(sweep)
    elif test.table is not None:
        lines, source = rows(files[test.table]), {"table": test.table}
    else:
        assert test.measure is not None, "one of the sources"
        lines = function(test.measure)(*(files[name] for name in test.data))
        source = {"measure": test.measure}
    return Measured(lines, source, data, time.monotonic() - began)


def evidence(claim: PaperClaim, measured: Measured) -> ClaimEvidence:
    """Compute a claim's values from measured lines; UserError if the lines lack something that a value needs."""
    test = _tested(claim)
    try:
        values = tuple(tuple(map(_rounded, each.measured.of(measured.lines, test.unit))) for each in test.predicts)
    except ValueRefused as error:
        raise UserError(f"claim {claim.id}: {error}") from None
    return ClaimEvidence(
        claim.id,
        claim_ledger.digest_of(test),
        verdict(test, values),
        fairwall.__version__,
        measured.source,
        measured.data,
        round(measured.seconds, 1),
        values,
    )


def checked(claim: PaperClaim, files: Files) -> ClaimEvidence:
    """Execute a claim's check; UserError if a file is missing."""
    test = _tested(claim)
    assert test.check is not None, "is checked"
    require(test, files)
    began = time.monotonic()
    found = function(test.check)(*(files[name] for name in test.data))
    return ClaimEvidence(
        claim.id,
        claim_ledger.digest_of(test),
        verdict(test, (), found.counterexample),
        fairwall.__version__,
        {"check": test.check},
        {name: claim_ledger.file_digest(files[name]) for name in test.data},
        round(time.monotonic() - began, 1),
        figures={key: _rounded(float(value)) for key, value in found.figures.items()},
        found=found.found,
        counterexample=found.counterexample,
    )


def scenario(test: ClaimTest, files: Files) -> Sweep:
    """Read the scenario that a test plays, with the test's settings."""
    from sim.games import read

    assert test.play is not None, "is played"
    settings = [f"{key}={_toml(value, files)}" for key, value in test.set.items()]
    base = {"trials": test.trials, "seed": test.seed}
    settings += [f"scenario.{key}={value}" for key, value in base.items() if value is not None]
    return read(test.play, settings)


def rows(path: Path) -> Lines:
    """Read a CSV file, also ``.gz``: a line for each row, numbers as numbers; UserError if that fails."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return [{key: _number(text) for key, text in row.items()} for row in csv.DictReader(io.StringIO(raw.decode()))]
    except (OSError, EOFError, ValueError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read as CSV: {error}") from None


def _played(sweep: Sweep, on_progress: Callable[[int], None]) -> Lines:
    from sim.play import runner
    from sim.runs.folder import RunFolder

    with tempfile.TemporaryDirectory(prefix="fairwall-claim-") as parent:
        folder = RunFolder.create(Path(parent), sweep.scenario.scenario.name)
        return runner.play(sweep, folder, on_progress).trials


def _shipped(sweep: Sweep) -> dict[str, str]:
    from sim.datasets import SHIPPED

    named = {getattr(getattr(cell.scenario, "data", None), "source", None) for cell in sweep.cells}
    named |= {getattr(getattr(cell.scenario, "groups", None), "source", None) for cell in sweep.cells}
    return {name: claim_ledger.file_digest(SHIPPED[name].path) for name in sorted(SHIPPED) if name in named}


def _toml(value: Any, files: Files) -> str:
    """Return a value as ``--set`` reads it; ``{NAME}`` stands for the user's file of that name."""
    if isinstance(value, str):
        for name, path in files.items():
            value = value.replace(f"{{{name}}}", str(path))
    return json.dumps(value, ensure_ascii=False)


def _rounded(value: float) -> float:
    return float(f"{value:.10g}")


def _number(text: str | None) -> float | str:
    try:
        return float(text or "")
    except ValueError:
        return text or ""


def _tested(claim: PaperClaim) -> ClaimTest:
    if claim.test is None:
        raise UserError(f"claim {claim.id}: {claim.status}: {claim.missing}")
    return claim.test
