"""A developer that tries all seeds learns nothing where the run's secret is random; by the seed alone, everything."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from sim.games import read
from sim.games.cards import WRITTEN_DOWN, party_seed
from sim.play import runner
from sim.runs.folder import RunFolder
from sim.runs.trials import read_trials
from sim.verify.check import verify
from tests.support.command import fairwall

HOSTILE = Path(__file__).with_name("hostile_seeds.py")
SEED = 3001
TRIALS = 3

SYNTHETIC = """
[scenario]
name = "seeds"
game = "reveal"
trials = 3
seed = 3001
secret = "random"
[data]
source = "synthetic"
n = 200
n0 = 100
scores = "uniform"
[compliance]
mechanism = "laplace"
epsilon = 0.1
[developer]
strategy = "sensing"
queries = 40
"""

TELLING = (
    *("checking_status", "duration", "credit_history", "purpose", "credit_amount", "savings", "employment", "age"),
    *("installment_rate", "personal_status", "other_debtors", "residence_since", "property", "existing_credits"),
    *("other_installment_plans", "job", "num_dependents", "foreign_worker"),
)
"""Columns by which people could be found again in the shipped table: whoever has it needs no seed then."""

SHIPPED = SYNTHETIC.replace(
    'source = "synthetic"\nn = 200\nn0 = 100\nscores = "uniform"',
    f'source = "german"\nprotected = "sex"\ntest_size = 200\nn0 = 100\ntrain_share = 0.2\ndrop = {[*TELLING]}',
)

scenarios = pytest.mark.parametrize(
    ("text", "below"),
    [
        (SYNTHETIC, 1 << 12),
        pytest.param(SYNTHETIC, 1 << 20, marks=pytest.mark.slow),
        pytest.param(SHIPPED, 1 << 12, marks=pytest.mark.slow),
    ],
)


def command(file: Path, below: int) -> str:
    return shlex.join([sys.executable, "-I", str(HOSTILE), str(file), str(below)])


def searched(folder: Path) -> list[str]:
    """Tell what its search came to, deal by deal."""
    return re.findall(r"hostile: deal-\d+: (\w+)", (folder / "logs/developer.log").read_text())


@pytest.mark.check
@scenarios
def test_a_developer_that_tries_all_seeds_learns_nothing(text: str, below: int, tmp_path: Path) -> None:
    file = tmp_path / "seeds.toml"
    file.write_text(text)
    done = fairwall("run", file, "--developer", command(file, below), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    folder = Path(printed["run_dir"])
    assert searched(folder) == ["None"] * TRIALS
    # Balanced accuracy of 200 people: chance is 50 +- 3.5, as it is without a query.
    assert all(abs(trial["leakage"] - 50) < 25 for trial in printed["trials"])
    result = json.loads((folder / "result.json").read_text())
    assert result["secret"] == printed["secret"] == "random"  # noqa: S105 - a mode
    assert result["programs"] == {"developer": command(file, below)}
    assert verify(folder).findings == ()


@pytest.mark.check
@scenarios
def test_the_same_developer_learns_everything_where_the_seed_decides(text: str, below: int, tmp_path: Path) -> None:
    file = tmp_path / "seeds.toml"
    file.write_text(text.replace('secret = "random"', 'secret = "seed"'))
    programs = {"developer": command(file, below)}
    refused = fairwall("run", file, "--developer", programs["developer"], cwd=tmp_path)
    assert (refused.returncode, refused.stdout, len(refused.stderr.splitlines())) == (2, "", 1)
    assert "--developer: only with --set scenario.secret=random" in refused.stderr
    assert not (tmp_path / "runs").exists()
    # As if it were not refused.
    sweep = read(str(file), [])
    folder = RunFolder.create(tmp_path, "seeds")
    runner.play(sweep, folder, lambda _: None, runner.Means(programs))
    assert searched(folder.path) == [str(SEED + trial) for trial in range(TRIALS)]
    assert [trial["leakage"] for trial in read_trials(folder.path / "trials.jsonl")] == [100.0] * TRIALS
    # The noise too: compliance was dealt the very seeds that follow.
    dealt = (folder.path / "transcript/compliance/1.bin").read_bytes()
    assert all(party_seed(WRITTEN_DOWN, SEED + trial, "compliance") in dealt for trial in range(TRIALS))
