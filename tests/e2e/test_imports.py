"""What the processes of a small game load: libraries that take longer to load than the game to play stay out."""

from __future__ import annotations

import subprocess
import sys

import pytest

SMALL = (
    "run",
    "reveal-adult-100",
    "--trials",
    "1",
    "--set",
    "developer.queries=5",
    "--set",
    "developer.public_sample=20",
)
COMMAND = "import sys; sys.executable = {!r}; from sim.cli.main import main; main()"


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each process of a small game with features says that it imports."""
    folder = tmp_path_factory.mktemp("small")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -X importtime "$@"\n')
    python.chmod(0o700)
    run = [sys.executable, "-X", "importtime", "-c", COMMAND.format(str(python)), *SMALL]
    played = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stderr
    (logs,) = folder.glob("runs/*/logs")
    told = {"referee": played.stderr} | {path.stem: path.read_text() for path in logs.glob("*.log")}
    assert "training the base model" in told["developer"]
    return told


@pytest.mark.check
@pytest.mark.parametrize("process", ["referee", "compliance", "developer", "adversary"])
@pytest.mark.parametrize("library", ["sklearn", "pandas"])
def test_no_process_of_a_small_game_with_features_imports(loaded: dict[str, str], library: str, process: str) -> None:
    assert " numpy\n" in loaded[process], "it says what it imports"
    assert f" {library}\n" not in loaded[process]
