"""Golden runs on other processors, with the referee's process emulated too: the same bits where they have x86-64-v3."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairwall.rpc import kernels

GOLDEN = Path(__file__).parents[1] / "golden"
QEMU = shutil.which("qemu-x86_64")
ALIKE, OLDER = ("Haswell", "Skylake-Client", "EPYC"), "Nehalem"
COMMAND = "import sys; sys.executable = {python!r}; sys.argv[0] = 'fairwall'; from sim.cli.start import main; main()"

pytestmark = [
    pytest.mark.slow(seconds=60),
    pytest.mark.timeout(900),
    pytest.mark.skipif(QEMU is None, reason="needs qemu-x86_64, of Debian's package qemu-user"),
]


def replayed(game: str, processor: str, folder: Path) -> tuple[dict[str, Any], str]:
    """Replay a golden run with every process on a processor; what it found, and what it said besides."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec {QEMU} -cpu {processor} {sys.executable} "$@"\n')
    python.chmod(0o700)
    run = shutil.copytree(GOLDEN / game, folder / game)
    done = subprocess.run(
        [python, "-c", COMMAND.format(python=str(python)), "replay", ".", "--json"],
        cwd=run,
        env=os.environ | {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "X86_V3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["same"]
    return found, done.stderr


def games() -> list[str]:
    return sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())


@pytest.mark.parametrize(("game", "processor"), list(zip(games(), itertools.cycle(ALIKE), strict=False)))
def test_a_golden_run_replays_bit_for_bit(game: str, processor: str, tmp_path: Path) -> None:
    """PyTorch's games too. Where not all versions are those that the run was recorded with, nothing else differs."""
    found, _ = replayed(game, processor, tmp_path)
    differs = [note for note in found["notes"] if kernels.LEVEL in note or "fixed kernels" in note]
    assert found["bit_for_bit"] or found["notes"]
    assert differs == []


@pytest.mark.parametrize("game", ["reveal"])
def test_a_golden_run_replays_to_the_tolerance_where_there_are_no_fixed_kernels(game: str, tmp_path: Path) -> None:
    found, said = replayed(game, OLDER, tmp_path)
    assert not found["bit_for_bit"]
    lacks = "x86-64 without avx, avx2, bmi1, bmi2, f16c, fma, movbe"
    assert f"played where there are no fixed kernels: {lacks}" in found["notes"]
    assert f"no fixed kernels here ({lacks})" in said
