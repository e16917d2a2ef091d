"""A fresh environment with only the client: how large it is, and that it asks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.loans_deployment import Deployment

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

ASK = """
import sys
import numpy as np
import fairwall

with fairwall.AuditClient(*sys.argv[1:]) as client:
    print(client.ask(np.ones((1, client.terms().people)), "sp", 1.0).gaps.shape)
"""


@pytest.mark.timeout(900)
def test_a_fresh_environment_is_small_and_asks(tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    script = ROOT / "scripts" / "client_size.py"
    sized = subprocess.run([sys.executable, script, fresh], capture_output=True, text=True, check=False)
    assert sized.returncode == 0, sized.stdout + sized.stderr
    assert "in all; the limit is 150" in sized.stdout
    deployment = Deployment(tmp_path / "deployment")
    with deployment.served():
        credentials = deployment.folder / "certificates" / "developer-alice"
        command = [fresh / "bin" / "python", "-W", "ignore", "-c", ASK, deployment.address, credentials]
        asked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (asked.returncode, asked.stdout) == (0, "(1,)\n"), asked.stderr
