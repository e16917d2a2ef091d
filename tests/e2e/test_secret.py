"""A run whose secret is random verifies, replays and resumes as any other; its key and others' seeds reach nobody."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sim.games import read as read_sweep
from sim.games.cards import WRITTEN_DOWN, party_seed
from sim.runs.folder import RunFolder
from sim.runs.trials import read_trials
from sim.transcripts.files import decode, paths, read
from sim.verify.check import VerifyFinding, verify
from tests.support.command import fairwall, played

REVEAL = """
[scenario]
name = "small"
game = "reveal"
trials = 2
seed = 7
secret = "random"
[data]
source = "german"
test_size = 20
n0 = 8
[compliance]
mechanism = "laplace"
epsilon = 10.0
[developer]
strategy = "sensing"
queries = 4
[adversary]
attack = ["loss-test"]
probes = 20
"""
INFERENCE = """
[scenario]
name = "small"
game = "inference"
trials = 2
seed = 7
secret = "random"
[data]
source = "german"
protected = "sex"
[compliance]
metric = "eodds_max"
mechanism = "laplace"
epsilon = 10.0
[developer]
defence = "fft"
lambdas = [0.5, 1.0]
victims = 4
steps = 20
tune_steps = 10
rows = 20
[adversary]
attack = ["loss-test", "label-meta"]
shadows = 4
probes = 50
"""
SCENARIOS = {"reveal": REVEAL, "inference": INFERENCE}
DEALT_IN = ("compliance", "developer", "adversary")
SEED = 7


@pytest.fixture(scope="module", params=["reveal", pytest.param("inference", marks=pytest.mark.slow(seconds=12))])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play a small game of all three parties."""
    if request.param == "inference":
        pytest.importorskip("torch", reason="the training extra is not installed")
    else:
        alone: Path = request.getfixturevalue("reveal")
        return alone
    place = tmp_path_factory.mktemp(request.param)
    (place / "small.toml").write_text(SCENARIOS[request.param])
    return played(place, "small.toml")


@pytest.fixture(scope="module")
def reveal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("reveal-alone")
    (place / "small.toml").write_text(REVEAL)
    return played(place, "small.toml")


@pytest.fixture
def copied(reveal: Path, tmp_path: Path) -> Path:
    """A run whose files may be taken away."""
    return Path(shutil.copytree(reveal, tmp_path / reveal.name))


def scenario_of(folder: Path) -> Path:
    return folder.parents[1] / "small.toml"


def timeless(folder: Path) -> list[dict[str, object]]:
    return [{**line, "seconds": 0} for line in read_trials(folder / "trials.jsonl")]


def key_of(folder: Path) -> bytes:
    key = (folder / "secret").read_bytes()
    assert len(key) == 32
    return key


def received(folder: Path, party: str) -> Iterator[bytes]:
    """Give all that reached a party, as it came and as it is understood."""
    (path,) = (folder / "transcript" / party).glob("*.bin")
    script = read(path)
    for message in script.messages:
        if message.is_received:
            yield script.data(message)
            yield repr(decode(message.method, message.is_request, script.data(message))).encode()


def replays(folder: Path, *options: str) -> None:
    done = fairwall("replay", folder, *options, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (json.loads(done.stdout)["same"], json.loads(done.stdout)["bit_for_bit"]) == (True, True)


@pytest.mark.check
def test_it_verifies_and_replays_bit_for_bit(folder: Path) -> None:
    assert verify(folder).findings == ()
    replays(folder)


@pytest.mark.slow
@pytest.mark.parametrize("party", DEALT_IN)
def test_each_party_replays_alone(folder: Path, party: str) -> None:
    replays(folder, "--party", party)


@pytest.mark.check
@pytest.mark.parametrize(
    "folder", ["reveal", pytest.param("inference", marks=pytest.mark.slow(seconds=12))], indirect=True
)
def test_what_was_broken_off_comes_out_as_if_it_had_not_been(folder: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(folder, tmp_path / folder.name))
    lines = (folder / "trials.jsonl").read_text().splitlines(keepends=True)
    (broken / "trials.jsonl").write_text("".join(lines[: len(lines) // 2]))
    done = fairwall("run", scenario_of(folder), "--resume", broken)
    assert done.returncode == 0, done.stderr
    assert timeless(broken) == timeless(folder)
    assert verify(broken).findings == ()


@pytest.mark.check
def test_another_run_of_the_same_seed_is_another_game(reveal: Path) -> None:
    again = played(scenario_of(reveal).parent, "small.toml")
    assert key_of(again) != key_of(reveal)
    # The groups themselves: compliance's deal.
    deals = [(run / "transcript/compliance/1.bin").read_bytes() for run in (reveal, again)]
    for run, deal in zip((reveal, again), deals, strict=True):
        own = party_seed(key_of(run), SEED, "compliance")
        assert [own in each for each in deals] == [each is deal for each in deals]
    assert [line["trace"] for line in timeless(reveal)[:1]] != [line["trace"] for line in timeless(again)[:1]]


@pytest.mark.check
@pytest.mark.parametrize(
    "folder", ["reveal", pytest.param("inference", marks=pytest.mark.slow(seconds=12))], indirect=True
)
def test_its_mode_is_named_and_its_key_is_its_owners_alone(folder: Path) -> None:
    assert stat.S_IMODE((folder / "secret").stat().st_mode) == 0o600
    result = json.loads((folder / "result.json").read_text())
    assert result["secret"] == "random"  # noqa: S105 - a mode
    page = (folder / "report.html").read_text()
    assert "random: cards, seeds and noise follow from the seed and 32 random bytes" in page
    assert "Draws that a party could recompute" not in page


@pytest.mark.check
def test_by_the_seed_alone_the_report_says_what_a_party_could_recompute(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(REVEAL)
    folder = played(tmp_path, "small.toml", "--set", "scenario.secret=seed", "--trials", "1")
    assert json.loads((folder / "result.json").read_text())["secret"] == "seed"  # noqa: S105
    assert "Draws that a party could recompute" in (folder / "report.html").read_text()
    assert stat.S_IMODE((folder / "secret").stat().st_mode) == 0o600
    assert len(key_of(folder)) == 32, "the scenario's name is kept from trying all the same"


def test_nobody_is_dealt_the_key_or_anothers_seed(folder: Path) -> None:
    key = key_of(folder)
    seeds = {(party, trial): party_seed(key, SEED + trial, party) for party in DEALT_IN for trial in range(2)}
    seeds |= {("referee", trial): party_seed(key, SEED + trial, "referee") for trial in range(2)}
    told_own = 0
    for party in DEALT_IN:
        all_of_it = b"\0".join(received(folder, party)) + (folder / "logs" / f"{party}.log").read_bytes()
        for form in (key, key.hex().encode(), repr(key).encode()):
            assert form not in all_of_it
        for (whose, _), seed in seeds.items():
            if whose == party:
                told_own += seed in all_of_it
            else:
                assert seed not in all_of_it
                assert seed.hex().encode() not in all_of_it
    assert told_own >= 4, "the search finds what is there"
    stored = b"".join(path.read_bytes() for path in paths(folder))
    assert key not in stored
    for name in ("result.json", "report.html", "scenario.toml"):
        assert key.hex() not in (folder / name).read_text()


@pytest.mark.slow
def test_noise_of_the_system_beside_it_replays_too(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(REVEAL)
    folder = played(tmp_path, "small.toml", "--set", "compliance.noise=system", "--trials", "1")
    assert verify(folder).findings == ()
    assert fairwall("replay", folder).returncode == 0


# The key is gone.


def one_line(done: subprocess.CompletedProcess[str], text: str) -> None:
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert text in line


@pytest.mark.check
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (os.unlink, "secret: is missing"),
        (lambda path: path.write_bytes(b"short"), "secret: holds 5 bytes, and a run's key has 32"),
    ],
)
def test_without_its_key_a_line_says_so(
    copied: Path, reveal: Path, change: Callable[[Path], object], text: str
) -> None:
    change(copied / "secret")
    one_line(fairwall("replay", copied), text)
    one_line(fairwall("run", scenario_of(reveal), "--resume", copied), text)
    done = fairwall("verify", copied)
    assert done.returncode == 1
    assert done.stdout.startswith("file: secret: is ")
    assert any(text in note for note in verify(copied).notes)


@pytest.mark.check
def test_a_party_alone_needs_no_key(copied: Path) -> None:
    (copied / "secret").unlink()
    assert fairwall("replay", copied, "--party", "developer").returncode == 0


# The name of the scenario.


@pytest.mark.check
def test_transcripts_of_another_scenario_or_key_are_named(copied: Path) -> None:
    text = "was written for another scenario than scenario.toml, or under another key"
    named = {VerifyFinding("file", f"transcript/{party}/1.bin", text) for party in (*DEALT_IN, "referee")}
    assert verify(copied).findings == ()
    key = key_of(copied)
    (copied / "secret").write_bytes(bytes(32))
    assert named < {*verify(copied).findings}
    (copied / "secret").write_bytes(key)
    scenario = copied / "scenario.toml"
    scenario.write_text(scenario.read_text().replace("n0 = 8", "n0 = 9"))
    assert named < {*verify(copied).findings}


@pytest.mark.parametrize("secret", ["random", pytest.param("seed", marks=pytest.mark.slow)])
def test_trying_digests_does_not_tell_how_many_are_disadvantaged(secret: str, reveal: Path, tmp_path: Path) -> None:
    folder = reveal
    if secret == "seed":  # noqa: S105
        folder = played(tmp_path, scenario_of(reveal), "--set", "scenario.secret=seed", "--trials", "1")
    kept = str(folder / "scenario.toml")
    tried = {n0: read_sweep(kept, [f"data.n0={n0}"]) for n0 in range(1, 20)}
    for party in ("developer", "adversary"):
        header = read(folder / "transcript" / party / "1.bin").header
        assert header is not None
        name = header.scenario_digest
        assert name == read_sweep(kept, []).name_for_parties(RunFolder(folder, folder.name).key)
        for sweep in tried.values():
            assert name not in (sweep.digest, *map(sweep.name_for_parties, (b"", WRITTEN_DOWN, bytes(32))))
    # What parties were told once, a digest without a key, is found.
    told_once = read_sweep(kept, []).digest
    assert [n0 for n0, sweep in tried.items() if sweep.digest == told_once] == [8]
