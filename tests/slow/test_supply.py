"""`make supply` installs the service from hashed packages alone, and says what it consists of, the same each time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build"


def _make_supply() -> None:
    """Run it as one would by hand; the packages come from wherever pip gets them."""
    subprocess.run(["make", f"PYTHON={sys.executable}", "supply"], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.timeout(1800)
def test_the_service_is_installed_from_the_lock_and_described(tmp_path):
    _make_supply()
    first = (BUILT / "sbom.json").read_bytes()
    _make_supply()

    sbom = json.loads(first)
    assert (BUILT / "sbom.json").read_bytes() == first
    assert sbom.keys().isdisjoint({"serialNumber"})
    assert "timestamp" not in sbom["metadata"]
    assert str(ROOT).encode() not in first
    assert os.uname().nodename.encode() not in first

    locked = [line.removesuffix(" \\") for line in (ROOT / "locks" / "service.txt").read_text().splitlines()]
    pins = [Requirement(line) for line in locked if "==" in line]
    assert {(canonicalize_name(found["name"]), found["version"]) for found in sbom["components"]} == {
        (canonicalize_name(pin.name), str(pin.specifier).removeprefix("=="))
        for pin in pins
        if pin.marker is None or pin.marker.evaluate()
    }
    assert len((BUILT / "licences.txt").read_text().splitlines()) == len(sbom["components"])

    # From elsewhere, so that it is the installed package that runs, and nothing of this tree.
    service = [BUILT / "service" / "bin" / "python", "-m", "compliance", "--policy", "nowhere.toml"]
    started = subprocess.run(service, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert started.returncode == 2
    assert "nowhere.toml" in started.stderr
