"""What the processes of a small game load: libraries that take longer to load than the game to play stay out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


@pytest.mark.check
def test_no_service_loads_pandas_to_read_its_tables(tmp_path: Path) -> None:
    """It would be a tenth of what a start takes; tables with groups, missing values and attributes to release."""
    main = "from sim.cli.start import main; main()"
    subprocess.run([sys.executable, "-c", main, "test", "conformance", "kit", str(tmp_path / "kit")], check=True)
    read = (
        "import sys; from pathlib import Path\n"
        "from compliance.deployment import serve\n"
        "from compliance.deployment.policy.loading import load_all\n"
        "from compliance.deployment.policy.reading import read\n"
        "for name in ('main', 'protocols'): load_all(read(Path(sys.argv[1], name, 'policy.toml')))\n"
        "sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", read, str(tmp_path / "kit")], check=False).returncode == 0


def test_to_import_what_answers_fixes_no_kernels() -> None:
    """A notebook that plays a game keeps the threads of its own linear algebra."""
    code = (
        "import os, compliance.answers.audits; from fairwall.rpc.kernels import ONE_THREAD;"
        "print(ONE_THREAD.keys() & os.environ.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={})
    assert done.stdout == "set()\n"
