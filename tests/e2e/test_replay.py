"""`fairwall replay`: runs play again bit for bit, what differs is named, a party or another decoder plays alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from blake3 import blake3

import fairwall as package
from fairwall.game.v1 import reveal_service_pb2 as game
from fairwall.rpc import kernels
from fairwall.rpc.arrays import from_message, to_message
from fairwall.rpc.chunks import varint
from fairwall.rpc.recorder import DIGEST_TAG, FIRST
from fairwall.rpc.recorder import versions as present_versions
from fairwall.transcript.v1 import transcript_pb2 as pb
from sim.cli.replay import replay as replay_command
from sim.datasets.coded import PREPARED
from sim.games import at_replay_size, lay_out
from sim.games import read as read_sweep
from sim.play import processes
from sim.replay import playing
from sim.replay.recorded import ReplayError, open_run
from sim.scenarios.sweep import ScenarioError, shipped
from sim.transcripts.files import _frames, decode, paths, read
from tests.support.command import SMALL, fairwall, played

GOLDEN = Path(__file__).parents[1] / "golden"
ROOT = Path(__file__).parents[2]
PARTIES = ("compliance", "developer", "adversary")
AT_100 = ("--set", "compliance.epsilon=100", "--set", "developer.queries=40", "--set", "compliance.mechanism=conceal")
REVEAL = """
[scenario]
name = "small"
game = "reveal"
trials = 2
seed = 3
[data]
source = "synthetic"
n = 60
n0 = 20
scores = "beta(0.5,2)"
[compliance]
metric = "sp"
mechanism = "laplace"
epsilon = 50.0
[developer]
strategy = "sensing"
decoder = "l1"
queries = 30
"""

ALL_THREE = """
[scenario]
name = "all-three"
game = "reveal"
trials = 1
seed = 3
[data]
source = "german"
protected = "sex"
advantaged = "male"
disadvantaged = "female"
test_size = 100
n0 = 10
[compliance]
metric = "sp"
mechanism = "conceal"
[developer]
strategy = "sensing"
decoder = "l1"
queries = 40
perturbation = 0.1
[adversary]
attack = ["loss-test"]
probes = 100
[sweep]
"compliance.epsilon" = ["inf", 100.0]
"""

SLOW, CHECK = pytest.mark.slow(seconds=12), pytest.mark.check
GAMES = {"reveal", "inference", "release", "disclosure", "training", "groups", "wash", "overfit", "curator"}
HAS_FIXED = kernels.processor() == kernels.LEVEL
FIXED = pytest.mark.skipif(not HAS_FIXED, reason=f"fixed kernels need {kernels.LEVEL}")


def small(name: str, data: dict[str, str] | None = None) -> list[str]:
    """Give the arguments that play a shipped scenario at its size for replays."""
    values = {**read_sweep(name).scenario.replay, **(data or {})}
    return [name, *(f"--set={key}={json.dumps(value)}" for key, value in values.items())]


def the_same(run: Path | str, *options: str, cwd: Path) -> dict[str, Any]:
    finished = fairwall("replay", str(run), *options, "--json", cwd=cwd)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    found: dict[str, Any] = json.loads(finished.stdout)
    assert found["same"]
    return found


def alone(folder: Path, party: str) -> playing.Replayed:
    """Run one party against its own transcript."""
    return playing.alone(open_run(folder), party)


def refusal(run: Path | str, party: str | None = None, decoder: str | None = None) -> str:
    """Give the one line that says why a run is not replayed."""
    with pytest.raises(ReplayError) as refused:
        replay_command(str(run), party=party, decoder=decoder)
    assert str(refused.value).isprintable()
    return str(refused.value)


def forge(path: Path, change: Callable[[pb.Entry], None]) -> None:
    """Write a transcript anew, each entry changed as one likes."""
    changed = []
    for _, body, _ in _frames(path):
        entry = pb.Entry.FromString(bytes(body))
        change(entry)
        changed.append(entry)
    rewrite(path, changed)


def rewrite(path: Path, entries: list[pb.Entry]) -> None:
    """Write a transcript of entries, with a chain that holds."""
    digest, out = FIRST, bytearray()
    for entry in entries:
        entry.ClearField("digest")
        body = entry.SerializeToString()
        length = varint(len(body) + len(DIGEST_TAG) + 32)
        digest = blake3(digest).update(length).update(body).digest()
        out += length + body + DIGEST_TAG + digest
    path.write_bytes(out)


def versions(**changed: str) -> Callable[[pb.Entry], None]:
    """Change what a transcript says of the versions that wrote it."""

    def change(entry: pb.Entry) -> None:
        for version in entry.header.versions if entry.HasField("header") else ():
            version.version = changed.get(version.name, version.version)

    return change


def numerics(change: Callable[[str, str], str]) -> Callable[[pb.Entry], None]:
    """Change what a transcript says of the kernels that computed."""

    def changed(entry: pb.Entry) -> None:
        for part in entry.numerics.parts:
            part.in_use = change(part.name, part.in_use)

    return changed


def recorded_here(path: Path) -> None:
    """Have a transcript say that the present versions wrote it, with what computes in this process."""
    import scipy.linalg  # noqa: F401 - its own linear algebra is asked too

    forge(path, versions(**dict(present_versions())))
    forge(path, numerics(lambda name, value: kernels.in_use().get(name, value)))


def in_reveal(change: Callable[[Any], None]) -> Callable[[pb.Entry], None]:
    """Change what the developer submitted."""

    def changed(entry: pb.Entry) -> None:
        if entry.HasField("message") and entry.message.call.method.endswith("/SubmitReveal") and entry.message.content:
            request = game.SubmitRevealRequest.FromString(entry.message.content)
            change(request)
            entry.message.content = request.SerializeToString()

    return changed


def flip(request: Any) -> None:
    guess = from_message(request.guess).copy()
    guess[3] = 1 - guess[3]  # type: ignore[operator]
    request.guess.CopyFrom(to_message(guess))


def nudge(by: float) -> Callable[[Any], None]:
    def change(request: Any) -> None:
        request.reconstruction.CopyFrom(to_message(from_message(request.reconstruction) + by))  # type: ignore[arg-type]

    return change


def read_guesses(path: Path) -> list[list[int]]:
    script = read(path)
    sent = [message for message in script.messages if message.method.endswith("/SubmitReveal") and message.is_request]
    requests = [decode(message.method, True, script.data(message)) for message in sent]
    return [from_message(request.guess).tolist() for request in requests]


def entries(path: Path, method: str) -> list[int]:
    return [message.entry for message in read(path).messages if message.method.endswith(f"/{method}")]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder that the module's runs are played in."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def all_three(shop: Path) -> Path:
    """Play a small game that all three parties take part in."""
    file = shop / "all-three.toml"
    file.write_text(ALL_THREE)
    return played(shop, str(file))


@pytest.fixture(scope="module")
def conceal(shop: Path) -> Path:
    return played(shop, "conceal-adult-100", *AT_100, "--trials", "2")


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str], Path]:
    """Copy a golden run, to be changed or replayed where it lies."""
    return lambda name: Path(shutil.copytree(GOLDEN / name, tmp_path / name))


# The whole game.


def test_a_game_of_three_replays_bit_for_bit(all_three: Path, shop: Path) -> None:
    found = the_same(all_three, cwd=shop)
    assert (found["trials"], found["bit_for_bit"], found["difference"]) == (2, True, None)
    assert found["messages"] > 100


@pytest.mark.parametrize("name", ["reveal", *(pytest.param(name, marks=CHECK) for name in sorted(GAMES - {"reveal"}))])
def test_the_golden_run_of_each_game_replays(golden: Callable[[str], Path], name: str) -> None:
    folder = golden(name)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found = the_same(".", cwd=folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    # Another version, of a C library too, may compute otherwise; a processor may not, where it has the kernels.
    assert found["bit_for_bit"] or any("recorded with" in note for note in found["notes"]) or not HAS_FIXED


def test_there_is_a_golden_run_of_each_game() -> None:
    assert {path.name for path in GOLDEN.iterdir() if path.is_dir()} == GAMES


def test_the_golden_runs_are_small() -> None:
    assert sum(path.stat().st_size for path in GOLDEN.rglob("*") if path.is_file()) < 45_000 * len(GAMES)


@pytest.mark.slow(seconds=10)
def test_a_run_that_was_gone_on_with_replays_as_it_was_played(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(REVEAL)
    run = played(tmp_path, str(file))
    trials = (run / "trials.jsonl").read_text().splitlines(keepends=True)
    (run / "trials.jsonl").write_text(trials[0])
    assert fairwall("run", str(file), "--resume", str(run), cwd=tmp_path).returncode == 0
    assert (run / "transcript/developer/2.bin").exists()
    # As if the developer had been killed the first time: the trial that was played again is compared there.
    (run / "transcript/developer/1.bin").write_bytes((run / "transcript/developer/1.bin").read_bytes()[:-60])
    assert the_same(run, cwd=tmp_path)["trials"] == 2


@pytest.mark.check
def test_noise_of_the_operating_system_replays_from_what_compliance_drew(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(REVEAL.replace("epsilon = 50.0", 'epsilon = 50.0\nnoise = "system"'))
    run = played(tmp_path, str(file))
    the_same(run, cwd=tmp_path)
    assert alone(run, "compliance").difference is None
    (run / "transcript/compliance/1.draws.jsonl").unlink()
    assert "1.draws.jsonl: is missing" in refusal(run)
    assert "1.draws.jsonl: is missing" in refusal(run, party="compliance")


# What differs is named.


def test_what_the_developer_guessed_otherwise_is_named(golden: Callable[[str], Path]) -> None:
    folder = golden("reveal")
    path = folder / "transcript/developer/1.bin"
    forge(path, in_reveal(flip))
    guess, _ = read_guesses(path)
    finished = fairwall("replay", ".", cwd=folder)
    assert finished.returncode == 1, finished.stderr
    where = f"developer, entry {entries(path, 'SubmitReveal')[0]}: SubmitRevealRequest.guess[3]"
    assert finished.stdout.splitlines()[-1] == f"{where}: recorded {guess[3]}, now {1 - guess[3]}"


def test_of_several_the_first_that_was_said_is_named(golden: Callable[[str], Path]) -> None:
    """The developer heard another deal, and compliance, in the same trial but earlier, another too."""
    folder = golden("reveal")
    for party in ("developer", "referee"):
        forge(folder / f"transcript/{party}/1.bin", in_reveal(flip))

    def seed(entry: pb.Entry) -> None:
        if entry.HasField("message") and entry.message.call.method.endswith("/TakeComplianceDeal"):
            answer = decode(entry.message.call.method, False, entry.message.content)
            if entry.message.direction == pb.DIRECTION_SENT and answer.HasField("deal"):
                answer.deal.audits.epsilon = 7.0
                entry.message.content = answer.SerializeToString()

    forge(folder / "transcript/referee/1.bin", seed)
    finished = fairwall("replay", ".", "--json", cwd=folder)
    difference = json.loads(finished.stdout)["difference"]
    assert (difference["party"], difference["field"]) == ("referee", "TakeComplianceDealResponse.deal.audits.epsilon")
    assert (difference["recorded"], difference["now"]) == ("7.0", "400.0")


@FIXED
def test_bits_count_where_fixed_kernels_computed_alone(golden: Callable[[str], Path]) -> None:
    folder = golden("reveal")
    path = folder / "transcript/developer/1.bin"
    recorded_here(path)
    forge(path, versions(cpu="an abacus"))  # what a processor is called decides nothing
    forge(path, in_reveal(nudge(1e-9)))
    found = alone(folder, "developer")
    assert found.difference is not None
    assert found.difference.field.startswith("SubmitRevealRequest.reconstruction[")
    # As if it had been recorded with another core's kernels.
    forge(path, numerics(lambda _, value: value.replace("Haswell", "SkylakeX")))
    found = alone(folder, "developer")
    assert (found.difference, found.bit_for_bit) == (None, False)
    assert any(
        re.match("recorded with openblas of numpy .* SkylakeX, this is .* Haswell", note) for note in found.notes
    )
    assert any(note.startswith("recorded without fixed kernels: openblas of numpy ") for note in found.notes)
    forge(path, in_reveal(nudge(1e-3)))
    assert alone(folder, "developer").difference is not None
    # Guesses are guesses on any machine.
    forge(path, in_reveal(nudge(-1e-3)))
    forge(path, in_reveal(flip))
    found = alone(folder, "developer")
    assert found.difference is not None
    assert found.difference.field == "SubmitRevealRequest.guess[3]"


def test_a_transcript_that_says_nothing_of_kernels_is_compared_to_the_tolerance(golden: Callable[[str], Path]) -> None:
    folder = golden("reveal")
    path = folder / "transcript/developer/1.bin"
    recorded_here(path)
    before = [pb.Entry.FromString(bytes(body)) for _, body, _ in _frames(path)]
    before[0].header.format = 2
    rewrite(path, [entry for entry in before if not entry.HasField("numerics")])
    forge(path, in_reveal(nudge(1e-9)))
    found = alone(folder, "developer")
    assert (found.difference, found.bit_for_bit) == (None, False)
    assert found.notes[0] == "what computed the numbers was not recorded"


@pytest.mark.check
@FIXED
@pytest.mark.parametrize(
    ("game_of", "party"), [("reveal", "developer"), pytest.param("inference", "developer", marks=CHECK)]
)
def test_a_party_that_chooses_its_kernels_is_told_by_what_ran(
    golden: Callable[[str], Path], game_of: str, party: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two broken twins: a party that is left to choose its kernels, and a comparison by the processor's name."""
    folder = golden(game_of)
    recorded_here(folder / f"transcript/{party}/1.bin")
    chosen = {"ATEN_CPU_CAPABILITY": "default", "OPENBLAS_CORETYPE": "Prescott"}
    twin = tmp_path / "python"
    twin.write_text(
        f"#!{sys.executable}\nimport os, runpy, sys\nfrom fairwall.rpc import kernels\n"
        f"kernels.fix = lambda: os.environ.update({chosen})\n"
        f"sys.argv = sys.argv[3:]\nrunpy.run_module('{party}', run_name='__main__', alter_sys=True)\n"
    )
    twin.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(twin))
    found = alone(folder, party)
    assert (found.difference, found.bit_for_bit) == (None, False)
    assert any(re.match("recorded with openblas of numpy .* Haswell, this is ", note) for note in found.notes)
    monkeypatch.setattr(playing, "circumstances", lambda *_: ([], True))
    assert alone(folder, party).difference is not None


CHOSEN = {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": "X86_V3", "ATEN_CPU_CAPABILITY": "default"}


@FIXED
@pytest.mark.check
def test_no_process_of_a_game_heeds_which_kernels_its_caller_chooses(golden: Callable[[str], Path]) -> None:
    folder = golden("reveal")
    for path in paths(folder):
        recorded_here(path)
    done = subprocess.run(
        [sys.executable, "-m", "sim", "replay", ".", "--json"],
        cwd=folder,
        env=os.environ | CHOSEN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (json.loads(done.stdout)["bit_for_bit"], json.loads(done.stdout)["notes"]) == (True, [])


@pytest.mark.check
@FIXED
@pytest.mark.parametrize(
    "party", ["developer", *(pytest.param(name, marks=CHECK) for name in ("compliance", "adversary"))]
)
def test_a_party_heeds_no_kernels_that_its_environment_chooses(
    golden: Callable[[str], Path], party: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if it were started by hand: the runner gives it none of its caller's variables."""
    folder = golden("reveal")
    recorded_here(folder / f"transcript/{party}/1.bin")
    plain = processes._environment
    monkeypatch.setattr(processes, "_environment", lambda: plain() | CHOSEN)
    # One that is forked has its kernels already.
    monkeypatch.setattr(processes, "subprocess", subprocess)
    found = alone(folder, party)
    assert (found.difference, found.bit_for_bit, found.notes) == (None, True, ())


@FIXED
@CHECK
def test_a_referee_whose_kernels_were_chosen_before_is_compared_to_the_tolerance(tmp_path: Path) -> None:
    """Somebody's own program, which had NumPy loaded when it began to play."""
    (tmp_path / "small.toml").write_text(SMALL)
    code = """
import numpy
from pathlib import Path
from sim.cli.run import run
run("small.toml", out=Path("runs"), as_json=True)
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NPY_")} | CHOSEN
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=True)
    (folder,) = (tmp_path / "runs").iterdir()
    found = the_same(folder, cwd=tmp_path)
    assert not found["bit_for_bit"]
    assert any(
        re.match("recorded without fixed kernels: openblas of numpy .* Nehalem", note) for note in found["notes"]
    )
    assert alone(folder, "developer").bit_for_bit


def test_a_format_of_the_future_is_refused_by_version(golden: Callable[[str], Path]) -> None:
    folder = golden("reveal")

    def future(entry: pb.Entry) -> None:
        versions(fairwall="9.9.9")(entry)
        if entry.HasField("header"):
            entry.header.format = 99

    for path in paths(folder):
        forge(path, future)
    text = refusal(folder)
    assert "format 99 by fairwall 9.9.9" in text
    assert f"this is fairwall {package.__version__}" in text


def test_another_versions_difference_names_both(golden: Callable[[str], Path]) -> None:
    folder = golden("reveal")
    path = folder / "transcript/developer/1.bin"
    forge(path, versions(fairwall="0.0.1"))
    found = alone(folder, "developer")
    assert f"recorded with fairwall 0.0.1, this is {package.__version__}" in found.notes
    assert found.difference is None
    forge(path, in_reveal(flip))
    finished = fairwall("replay", ".", "--party", "developer", cwd=folder)
    assert finished.returncode == 1
    assert f"recorded with fairwall 0.0.1, this is {package.__version__}" in finished.stdout


def test_what_cannot_be_replayed_is_one_line(golden: Callable[[str], Path], tmp_path: Path) -> None:
    folder = golden("reveal")
    (tmp_path / "empty").mkdir()
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    data = bytearray((broken / "transcript/developer/1.bin").read_bytes())
    data[500] ^= 1
    (broken / "transcript/developer/1.bin").write_bytes(data)
    silent = tmp_path / "silent"
    shutil.copytree(folder, silent)
    shutil.rmtree(silent / "transcript")
    older = tmp_path / "older"
    shutil.copytree(folder, older)
    kept = (older / "scenario.toml").read_text()
    (older / "scenario.toml").write_text(kept.replace("[developer]", "[developer]\nmood = 3"))
    text = refusal(older)
    assert "developer.mood: unknown key" in text
    assert f"played by fairwall {package.__version__}, this is {package.__version__}" in text
    assert "not a run's folder" in refusal(tmp_path / "empty")
    assert "not a run's folder" in refusal("nowhere")
    assert "fairwall verify" in refusal(broken)
    assert "nothing was recorded" in refusal(silent)
    assert "not with 'oracle'" in refusal(folder, decoder="oracle")
    for options, text in (
        (("--party", "referee"), "--party must be compliance, developer or adversary"),
        (("--party", "developer", "--decoder", "best"), "give one of them"),
    ):
        refused = fairwall("replay", ".", *options, cwd=folder)
        assert refused.returncode == 2
        assert text in refused.stderr
        assert len(refused.stderr.splitlines()) == 1


# One party alone.


@pytest.mark.few(1)
@pytest.mark.parametrize("party", PARTIES)
def test_a_party_replays_alone(all_three: Path, party: str) -> None:
    found = alone(all_three, party)
    assert (found.difference, found.bit_for_bit, found.trials) == (None, True, 2)


@pytest.mark.check
@pytest.mark.parametrize(
    "party", [pytest.param("compliance", marks=SLOW), "developer", pytest.param("adversary", marks=SLOW)]
)
def test_a_party_of_the_inference_game_replays_alone(golden: Callable[[str], Path], party: str) -> None:
    assert alone(golden("inference"), party).difference is None


@pytest.mark.slow(seconds=10)
def test_parties_replay_alone_where_each_calls_the_other(tmp_path: Path) -> None:
    file = tmp_path / "hidden.toml"
    file.write_text(REVEAL.replace("[compliance]", "hidden = true\n[compliance]"))
    run = played(tmp_path, str(file))
    assert entries(run / "transcript/developer/1.bin", "Predict")
    for party in ("compliance", "developer"):
        assert alone(run, party).difference is None


def test_a_question_too_many_is_named_where_it_was_asked(golden: Callable[[str], Path]) -> None:
    """As if the developer had once asked a single question."""
    folder = golden("reveal")
    path = folder / "transcript/developer/1.bin"
    audits = {message.call.number for message in read(path).messages if message.method.endswith("/Audit")}
    gone, end = max(audits), 0
    kept = []
    for _, body, _ in _frames(path):
        entry = pb.Entry.FromString(bytes(body))
        call = (entry.message if entry.HasField("message") else entry.ended).call
        if not (call.peer == "compliance" and call.number == gone):
            kept.append(entry)
            if call.peer == "compliance":
                end = len(kept) - 1
    rewrite(path, kept)
    found = alone(folder, "developer")
    assert found.difference is not None
    assert found.difference.field == "Audit"
    assert (found.difference.recorded, found.difference.now) == ("not called here", "called")
    assert found.difference.entry is not None
    assert found.difference.entry >= end


def test_a_party_that_says_otherwise_alone_is_named(golden: Callable[[str], Path]) -> None:
    """Compliance is told another budget than it was, and refuses."""
    folder = golden("reveal")

    def poorer(entry: pb.Entry) -> None:
        if entry.HasField("message") and entry.message.call.method.endswith("/TakeComplianceDeal"):
            answer = decode(entry.message.call.method, False, entry.message.content)
            if entry.message.direction == pb.DIRECTION_RECEIVED and answer.HasField("deal"):
                answer.deal.audits.epsilon = 30.0
                entry.message.content = answer.SerializeToString()

    path = folder / "transcript/compliance/1.bin"
    forge(path, poorer)
    found = alone(folder, "compliance")
    assert found.difference is not None
    first = min(entries(path, "Audit"))
    assert (found.difference.party, found.difference.is_sent) == ("compliance", True)
    assert found.difference.entry is not None
    assert found.difference.entry >= first
    assert found.difference.field.startswith("Audit")


# Another decoder on the answers already given.


@pytest.mark.slow(seconds=10)
def test_another_decoder_learns_what_it_would_have_learned_live(conceal: Path, shop: Path) -> None:
    live = played(shop, "conceal-adult-100", *AT_100, "--trials", "2", "--set", "developer.decoder=best")
    trials = [json.loads(line) for line in (live / "trials.jsonl").read_text().splitlines()]
    before = {path: path.read_bytes() for path in conceal.rglob("*") if path.is_file()}
    parties = set()
    with subprocess.Popen(
        [sys.executable, "-m", "sim", "replay", str(conceal), "--decoder", "best", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=shop,
    ) as process:
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            for child in watched.children(recursive=True):
                try:
                    parties |= {word for word in child.cmdline() if word in PARTIES}
                except (psutil.NoSuchProcess, psutil.AccessDenied):
                    continue
        assert process.stdout is not None
        found = json.loads(process.stdout.read())
    assert [trial["leakage"] for trial in found["trials"]] == [trial["leakage"] for trial in trials]
    assert [trial["baseline_leakage"] for trial in found["trials"]] == [trial["baseline_leakage"] for trial in trials]
    kept = [json.loads(line)["leakage"] for line in (conceal / "trials.jsonl").read_text().splitlines()]
    assert [trial["recorded_leakage"] for trial in found["trials"]] == kept
    assert {trial["recorded_decoder"] for trial in found["trials"]} == {"l1"}
    assert found["leakage"] == np.mean([trial["leakage"] for trial in trials])
    # No compliance, so no budget; and the run is left as it was.
    assert parties == {"developer"}
    assert {path: path.read_bytes() for path in conceal.rglob("*") if path.is_file()} == before


@pytest.mark.check
def test_the_decoders_leakage_stands_beside_the_baseline(golden: Callable[[str], Path]) -> None:
    folder = golden("reveal")
    finished = fairwall("replay", ".", "--decoder", "box", cwd=folder)
    assert finished.returncode == 0, finished.stderr
    assert "leakage, box" in finished.stdout
    assert "no query" in finished.stdout
    assert max(map(len, finished.stdout.splitlines())) <= 80
    told = json.loads(fairwall("replay", ".", "--decoder", "box", "--json", cwd=folder).stdout)["trials"]
    below = finished.stdout.partition("──")[2].splitlines()[1:]
    rows = [line for line in below if line.strip() and line.split()[0] != "all"]
    assert len(rows) == len({trial["cell"] for trial in told})
    assert sum(int(row.split()[-5]) for row in rows) == len(told), "one line a cell"


def test_questions_that_were_not_asked_have_no_answers(golden: Callable[[str], Path]) -> None:
    folder = golden("reveal")

    def otherwise(entry: pb.Entry) -> None:
        if entry.HasField("message") and entry.message.call.method.endswith("/Audit"):
            request = decode(entry.message.call.method, True, entry.message.content)
            if entry.message.direction == pb.DIRECTION_SENT and request.HasField("header"):
                request.header.epsilon *= 0.5
                entry.message.content = request.SerializeToString()

    forge(folder / "transcript/developer/1.bin", otherwise)
    assert "these answers are not in the log" in refusal(folder, decoder="box")


def test_the_inference_game_has_no_decoder(golden: Callable[[str], Path]) -> None:
    assert "the inference game has no decoder" in refusal(golden("inference"), decoder="best")


@pytest.mark.check
def test_a_log_of_digests_has_no_answers_to_give_again(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(REVEAL)
    run = played(tmp_path, str(file), "--set", "scenario.record=digest")
    assert "kept arrays only by digest" in refusal(run, decoder="best")
    assert "kept arrays only by digest" in refusal(run, party="developer")
    # The whole game asks nothing of it but to be the same.
    the_same(run, cwd=tmp_path)


# The view.


def test_the_view_fits_a_terminal_and_says_who_said_what(all_three: Path, shop: Path) -> None:
    finished = fairwall("replay", str(all_three), "--speed", "0.01", cwd=shop)
    assert finished.returncode == 0, finished.stderr
    lines = finished.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(finished.stdout.split())
    assert "developer → compliance sp of 40 models? predictions 40 × 100" in text
    assert "[the developer has 41 answers; ε left: 0]" in text
    assert "developer → referee guesses who belongs where: right for 100 of 100, leakage 100.0%" in text
    numbers = [int(line[:4]) for line in lines if line[:4].strip()]
    assert numbers == list(range(1, len(numbers) + 1))
    # Nobody answers before asked: the size query, then its answer, then the guess.
    assert text.index("sp of 1 model?") < text.index("1 answer,") < text.index("guesses who belongs where")


def test_the_view_of_the_inference_game(golden: Callable[[str], Path]) -> None:
    finished = fairwall("replay", ".", "--step", cwd=golden("inference"))
    text = " ".join(finished.stdout.split())
    assert "4 models to train; defence fft" in text
    assert "adversary → developer model 3, your scores of 20 rows?" in text or "model 3, your scores of" in text
    assert "guesses which group each model learned from: right for" in text
    assert max(map(len, finished.stdout.splitlines())) <= 80


@pytest.mark.check
def test_a_step_waits_for_enter() -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "sim", "replay", str(GOLDEN / "reveal"), "--step"], stdin=theirs, stdout=theirs
    ) as process:
        os.close(theirs)
        seen = ""
        while "   1 " not in seen:
            seen += os.read(ours, 4096).decode()
        assert "   2 " not in seen
        assert process.poll() is None
        os.write(ours, b"\n")
        while "   2 " not in seen:
            seen += os.read(ours, 4096).decode()
        process.kill()
    os.close(ours)


# Minutes.

STAND_INS = {
    "dia-acs-coverage": "acs-coverage",
    "dia-lsac-race": "lsac",
    "dia-lsac-sex": "lsac",
    "ldp-acs-coverage": "acs-coverage",
    "ldp-adult": "adult-26k",
    "ldp-lsac": "lsac-coded",
    "ldp-optimum": "lsac-coded",
    "ldp-quick": "lsac-coded",
    "ldp-random-attributes": "lsac-coded",
}
"""Scenarios whose tables are the user's own: their columns, with numbers that mean nothing."""


def stand_in(kind: str, folder: Path) -> Path:
    import pyarrow as pa
    from pyarrow import csv

    rng = np.random.default_rng(5)
    n = 400
    if kind == "lsac":
        columns = {name: rng.normal(30, 5, n).round(1) for name in ("lsat", "ugpa", "fam_inc", "age")}
        columns |= {name: rng.integers(1, 4, n) for name in ("cluster", "fulltime")}
        columns |= {"gender": rng.choice(["male", "female"], n), "race1": rng.choice(["white", "black"], n)}
        columns |= {"pass_bar": rng.integers(0, 2, n)}
    elif kind != "acs-coverage":
        known = PREPARED[kind]
        columns = {name: rng.integers(0, 4, n) for name in known.features}
        columns |= {name: rng.integers(0, 2, n) for name in (known.protected, known.label)}
    else:
        codes = ["MAR", "SEX", "DIS", "ESP", "CIT", "MIG", "MIL", "ANC", "NATIVITY", "ESR", "ST", "FER", "RAC1P"]
        columns = {name: rng.integers(0, 2, n) for name in (*codes, "PUBCOV")}
        columns |= {"AGEP": rng.integers(0, 90, n), "SCHL": rng.integers(0, 24, n)}
    path = folder / f"{kind}.csv"
    csv.write_csv(pa.table({name: pa.array(values) for name, values in columns.items()}), path)
    return path


@pytest.mark.slow(seconds=10)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", list(shipped()))
def test_every_shipped_scenario_replays_at_its_size_for_replays(name: str, tmp_path: Path) -> None:
    kind = STAND_INS.get(name)
    data = {"data.source": f"{kind}:{stand_in(kind, tmp_path)}"} if kind else {}
    run = played(tmp_path, *small(name, data))
    assert the_same(run, cwd=tmp_path)["bit_for_bit"]


@pytest.mark.slow(seconds=10)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(10))
def test_the_reveal_game_replays_with_ten_seeds(seed: int, tmp_path: Path) -> None:
    run = played(tmp_path, *small("reveal-adult-100"), "--seed", str(1000 * seed + 1))
    assert the_same(run, cwd=tmp_path)["bit_for_bit"]


def test_every_shipped_scenario_declares_its_size_for_replays() -> None:
    for name in shipped():
        whole = read_sweep(name)
        assert whole.scenario.replay, name
        little = at_replay_size(whole)
        assert all(cell.scenario.scenario.trials == 1 for cell in little.cells)
        assert len(little.cells) <= 6
        assert not little.scenario.replay


def test_the_size_for_replays_is_not_part_of_the_digest() -> None:
    values = tomllib.loads(REVEAL)
    plain = lay_out(values, "small")
    assert lay_out({**values, "replay": {"scenario.trials": 1}}, "small").digest == plain.digest
    with pytest.raises(ScenarioError) as refused:
        lay_out({**values, "replay": {"scenario.trails": 1}}, "small")
    assert str(refused.value) == "small: replay: scenario.trails: unknown key; did you mean scenario.trials?"
    # What else is set may not go with it: its values count where they are used.
    kept = lay_out({**values, "replay": {"developer.queries": 0}}, "small")
    with pytest.raises(ScenarioError) as refused:
        at_replay_size(kept)
    assert str(refused.value).startswith("small: replay: developer.queries: must be an integer of at least 1")


@pytest.mark.slow(seconds=10)
@pytest.mark.timeout(600)
def test_one_changed_line_of_a_decoder_makes_it_name_that_message(tmp_path: Path) -> None:
    """The packages are copied, with their libraries: parties are started by our interpreter, and confined to it."""
    copy = tmp_path / "copy"
    for name in ("compliance", "developer", "adversary", "sim", "proto"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True, timeout=300)
    python = tmp_path / "venv/bin/python"
    (site,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    for folder in (Path(entry) for entry in sys.path if entry.endswith("site-packages")):
        heavy = shutil.ignore_patterns("torch*", "nvidia*", "triton*", "*fairwall*", "sklearn", "__pycache__", "tests")
        shutil.copytree(folder, site, ignore=heavy, copy_function=_link, dirs_exist_ok=True)
    (site / "copy.pth").write_text(f"{copy}\n{copy / 'proto'}\n")
    run = tmp_path / "run"
    shutil.copytree(GOLDEN / "reveal", run)

    def replayed() -> subprocess.CompletedProcess[str]:
        words = [python, "-m", "sim", "replay", run, "--json"]
        return subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, timeout=600, check=False)

    found = replayed()
    assert found.returncode == 0, found.stdout + found.stderr
    changed = copy / "developer/reveal/decode/l1.py"
    text = changed.read_text()
    line = "    return 1 / evidence.n1 - ("
    assert text.count(line) == 1
    changed.write_text(text.replace(line, "    return 1 / evidence.n1 + ("))
    found = replayed()
    assert found.returncode == 1, found.stdout + found.stderr
    difference = json.loads(found.stdout)["difference"]
    assert (difference["party"], difference["entry"]) == (
        "developer",
        entries(run / "transcript/developer/1.bin", "SubmitReveal")[0],
    )
    assert difference["field"].startswith(("SubmitRevealRequest.guess[", "SubmitRevealRequest.reconstruction["))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
