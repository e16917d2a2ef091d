"""`fairwall replay` of runs that something befell: what was finished is played again, what was broken off is said."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fairwall.game.v1 import reveal_service_pb2 as game
from fairwall.transcript.v1 import transcript_pb2 as pb
from sim.replay import playing
from sim.replay.other_decoder import decoded
from sim.replay.recorded import open_run
from sim.transcripts.files import _frames, decode, read
from tests.e2e.test_confine import WITHOUT_LANDLOCK, needs_landlock
from tests.e2e.test_replay import PARTIES, flip, rewrite, the_same
from tests.support.command import SMALL, fairwall, played

SLOW = pytest.mark.slow

KILLED = 'kind = "kill"\nparty = "compliance"\nstep = "SubmitReveal"'
"""The developer has heard all answers of the trial by then, and is lost because of it."""

ENDS = {
    "developer": 'kind = "kill"\nparty = "developer"\nlink = "developer-compliance"\ntowards = "client"\nafter = 100',
    "question lost": 'kind = "drop"\nlink = "developer-compliance"\nafter = 100',
    "answer lost": 'kind = "drop"\nlink = "developer-compliance"\ntowards = "client"\nafter = 300',
    "paused": 'kind = "pause"\nparty = "compliance"\nstep = "ServeTrial"',
}
"""What ends a trial: a party that is killed or stands still, a connection that breaks on either way."""

NOTE = "not compared: what was said in trial 2 before the game broke off there"


def with_faults(folder: Path, *faults: str, scenario: str = SMALL) -> Path:
    """Write a scenario that has faults in its second trial."""
    file = folder / "small.toml"
    at = "".join(f"[[faults.at]]\ntrial = 2\n{fault}\n" for fault in faults)
    file.write_text(f"{scenario}\n[faults]\ndeadline = 8.0\n{at}")
    return file


def broken_off(file: Path) -> Path:
    """Play a scenario until a fault ends the run; its folder."""
    finished = fairwall("run", str(file), cwd=file.parent)
    assert finished.returncode == 1, finished.stderr
    (folder,) = file.parent.glob("runs/*")
    return folder


def gone_on_with(file: Path) -> Path:
    """Play a scenario that a fault ends, and go on with it to its end; its folder."""
    folder = broken_off(file)
    resumed = fairwall("run", str(file), "--resume", str(folder), cwd=file.parent)
    assert resumed.returncode == 0, resumed.stderr
    return folder


def alone(folder: Path, party: str) -> playing.Replayed:
    return playing.alone(open_run(folder), party)


def change_entries(path: Path, change: Callable[[list[pb.Entry]], list[pb.Entry]]) -> None:
    """Write a transcript anew, its entries changed as one likes."""
    rewrite(path, change([pb.Entry.FromString(bytes(body)) for _, body, _ in _frames(path)]))


def guessed_otherwise(deal_id: str) -> Callable[[list[pb.Entry]], list[pb.Entry]]:
    """Change what the developer guessed in one trial."""

    def change(entries: list[pb.Entry]) -> list[pb.Entry]:
        for entry in entries:
            if entry.HasField("message") and entry.message.call.method.endswith("/SubmitReveal"):
                message = decode(entry.message.call.method, True, entry.message.content)
                if isinstance(message, game.SubmitRevealRequest) and message.deal_id == deal_id:
                    flip(message)
                    entry.message.content = message.SerializeToString()
        return entries

    return change


def copied(run: Path, place: Path) -> Path:
    return Path(shutil.copytree(run, place / "run"))


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play a game in which compliance is killed, and go on with it."""
    return gone_on_with(with_faults(tmp_path_factory.mktemp("killed"), KILLED))


@pytest.mark.slow
def test_faults_that_only_take_time_change_nothing(tmp_path: Path) -> None:
    file = with_faults(
        tmp_path,
        'kind = "delay"\nlink = "developer-compliance"\nseconds = 0.05',
        'kind = "throttle"\nlink = "compliance-referee"\ntowards = "client"\nseconds = 0.05',
        'kind = "blackhole"\nlink = "developer-referee"\nafter = 50\nseconds = 0.5',
        'kind = "pause"\nparty = "adversary"\nstep = "ServeTrial"\nseconds = 0.5',
    )
    folder = played(tmp_path, file)
    assert len((folder / "faults.jsonl").read_text().splitlines()) == 4
    found = the_same(folder, cwd=tmp_path)
    assert (found["trials"], found["bit_for_bit"], found["notes"]) == (3, True, [])
    found_alone = alone(folder, "developer")
    assert (found_alone.difference, found_alone.notes) == (None, ())


@pytest.mark.check
def test_a_run_that_a_kill_broke_off_replays_its_trials_and_says_what_was_not_compared(killed: Path) -> None:
    before = {path: path.read_bytes() for path in killed.rglob("*") if path.is_file()}
    finished = fairwall("replay", str(killed), cwd=killed.parent)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    note, told = finished.stdout.splitlines()
    assert note == f"note: {NOTE}"
    assert ": 3 trials, " in told
    assert told.endswith(" messages: the same bit for bit")
    assert {path: path.read_bytes() for path in killed.rglob("*") if path.is_file()} == before


@pytest.mark.check
@pytest.mark.parametrize(
    "party", ["developer", *(pytest.param(name, marks=SLOW) for name in ("compliance", "adversary"))]
)
def test_each_party_of_it_replays_alone(killed: Path, party: str) -> None:
    found = alone(killed, party)
    assert (found.difference, found.notes) == (None, (NOTE,))
    assert found.trials == (0 if party == "adversary" else 3)  # who is dealt in on none in this game


@pytest.mark.slow
def test_another_decoder_reads_the_answers_of_its_finished_trials(killed: Path) -> None:
    trials = decoded(open_run(killed), "best")
    assert [trial.deal_id for trial in trials] == ["deal-1", "deal-2", "deal-3"]
    kept = [json.loads(line)["leakage"] for line in (killed / "trials.jsonl").read_text().splitlines()]
    assert [trial.recorded_leakage for trial in trials] == kept


@pytest.mark.slow
@pytest.mark.parametrize("fault", ENDS.values(), ids=ENDS)
def test_whatever_broke_it_off_the_finished_trials_are_the_same(tmp_path: Path, fault: str) -> None:
    folder = gone_on_with(with_faults(tmp_path, fault))
    found = the_same(folder, cwd=tmp_path)
    assert (found["trials"], found["notes"]) == (3, [NOTE])
    for party in PARTIES:
        assert alone(folder, party).difference is None


@pytest.mark.slow
def test_a_party_that_has_no_part_is_missed_a_trial_later_or_sooner(tmp_path: Path) -> None:
    more = SMALL.replace("trials = 3", "trials = 30")
    folder = gone_on_with(
        with_faults(tmp_path, 'kind = "kill"\nparty = "adversary"\nstep = "SubmitReveal"', scenario=more)
    )
    found = the_same(folder, cwd=tmp_path)
    assert found["trials"] == 30
    assert found["notes"] in ([], *([NOTE.replace("trial 2", f"trial {trial}")] for trial in range(2, 31)))
    for party in PARTIES:
        assert alone(folder, party).difference is None


@pytest.mark.slow
def test_a_developer_alone_answers_all_questions_about_a_finished_trial_before_the_break(tmp_path: Path) -> None:
    """Its released model is asked while it already waits for the trial that was broken off."""
    people = SMALL[SMALL.index("[data]") : SMALL.index("[compliance]")]
    released = '[data]\nsource = "german"\ntest_size = 30\n[adversary]\nattack = ["loss-test"]\nprobes = 20\n'
    folder = gone_on_with(with_faults(tmp_path, KILLED, scenario=SMALL.replace(people, released)))
    for party in PARTIES:
        found = alone(folder, party)
        assert (found.difference, found.notes, found.trials) == (None, (NOTE,), 3)


@pytest.mark.slow
def test_the_operating_systems_noise_is_drawn_again_on_both_sides_of_a_break(tmp_path: Path) -> None:
    noisy = SMALL.replace("epsilon = 10.0", 'epsilon = 10.0\nnoise = "system"')
    folder = gone_on_with(with_faults(tmp_path, KILLED, scenario=noisy))
    assert the_same(folder, cwd=tmp_path)["notes"] == [NOTE]
    assert alone(folder, "compliance").difference is None


@pytest.mark.slow
def test_a_run_that_nobody_went_on_with_replays_what_was_finished(tmp_path: Path) -> None:
    folder = broken_off(with_faults(tmp_path, KILLED))
    found = the_same(folder, cwd=tmp_path)
    assert (found["trials"], found["notes"]) == (1, [NOTE])
    assert alone(folder, "developer").difference is None


@pytest.mark.check
@pytest.mark.parametrize(("number", "deal_id"), [("1", "deal-1"), pytest.param("2", "deal-2", marks=SLOW)])
def test_what_differs_before_and_after_the_break_is_named(
    killed: Path, tmp_path: Path, number: str, deal_id: str
) -> None:
    """As if the developer had guessed otherwise, in the trial before the break or in the one that was played again."""
    folder = copied(killed, tmp_path)
    change_entries(folder / f"transcript/developer/{number}.bin", guessed_otherwise(deal_id))
    difference = alone(folder, "developer").difference
    assert difference is not None
    assert difference.field == "SubmitRevealRequest.guess[3]"


@pytest.mark.check
def test_what_was_said_before_the_break_is_not_compared(killed: Path, tmp_path: Path) -> None:
    folder = copied(killed, tmp_path)
    path = folder / "transcript/developer/1.bin"
    before = path.read_bytes()
    change_entries(path, guessed_otherwise("deal-2"))
    assert path.read_bytes() != before
    assert alone(folder, "developer").difference is None


@pytest.mark.check
def test_a_party_that_was_lost_after_the_last_trial_is_not_missed(killed: Path, tmp_path: Path) -> None:
    """As if its connection had broken then: it writes its end, but nobody told it that the run is over."""
    folder = copied(killed, tmp_path)
    path = folder / "transcript/developer/2.bin"
    last = read(path).messages[-1].call

    def without_last(entries: list[pb.Entry]) -> list[pb.Entry]:
        calls = [entry.message.call if entry.HasField("message") else entry.ended.call for entry in entries]
        return [
            entry
            for entry, call in zip(entries, calls, strict=True)
            if (call.peer, call.number) != (last.server, last.number)
        ]

    change_entries(path, without_last)
    assert read(path).closed
    assert len(read(path).messages) < len(read(killed / "transcript/developer/2.bin").messages)
    assert alone(folder, "developer").difference is None


# The walls around a party alone.


def replayed_without_landlock(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_LANDLOCK, "-m", "sim", "replay", str(folder), *options],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
        check=False,
    )


@needs_landlock
@pytest.mark.parametrize(
    "options_refused",
    [
        pytest.param([(("--party", "developer"), "developer")], marks=SLOW),
        pytest.param(
            [
                ((), "developer and adversary"),
                (("--party", "adversary"), "adversary"),
                (("--decoder", "best"), "developer"),
            ],
            marks=SLOW,
        ),
    ],
    ids=["developer", "others"],
)
def test_a_party_alone_is_confined_as_the_scenario_demands_or_not_started(
    tmp_path: Path, options_refused: list[tuple[tuple[str, ...], str]]
) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL.replace("trials = 3", 'trials = 1\nrequire = ["landlock", "non-dumpable"]'))
    folder = played(tmp_path, file)
    assert alone(folder, "developer").difference is None
    missing = "no layer landlock (no Landlock here: function not implemented) around"
    for options, around in options_refused:
        refused = replayed_without_landlock(folder, *options)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr == f"fairwall: scenario.require: {missing} {around}\n"
    # Compliance has no such layer, with or without.
    assert replayed_without_landlock(folder, "--party", "compliance").returncode == 0
