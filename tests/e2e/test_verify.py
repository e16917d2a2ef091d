"""`fairwall verify`: honest runs are well; whatever is changed, dropped, contradicted or leaked is named."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from numpy.typing import NDArray

from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.game.v1 import inference_service_pb2 as inference
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1 import reveal_service_pb2 as reveal_pb2
from fairwall.rpc.arrays import header_of
from fairwall.rpc.recorder import CALL_KEY, TranscriptRecorder
from fairwall.wire.v1 import error_pb2
from sim.games import read as read_sweep
from sim.runs.folder import digests
from sim.runs.page import write_report
from sim.transcripts.files import Transcript, anchors, paths, read
from sim.verify.check import verify
from sim.verify.finding import Verification, VerifyFinding
from sim.verify.report_page import changed_page
from tests.support.command import fairwall, played

REFEREE = "/fairwall.game.v1.RefereeService/"
REVEALS = "/fairwall.game.v1.RevealService/"
TERMS = "/fairwall.compliance.v1.AuditService/GetTerms"
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
strategy = "linear"
"""
INFERENCE = """
[scenario]
name = "small-inference"
game = "inference"
trials = 1
seed = 3
[data]
source = "german"
protected = "sex"
advantaged = "male"
[developer]
victims = 4
steps = 5
rows = 50
[adversary]
attack = ["loss-test"]
probes = 50
shadows = 0
"""


def run(folder: Path, scenario: str) -> Path:
    """Play a scenario with the real command; the run's folder."""
    file = folder / "scenario.toml"
    file.write_text(scenario)
    return played(folder, file)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("honest"), REVEAL)


@pytest.fixture
def copied(honest: Path, tmp_path: Path) -> Path:
    """A run that may be tampered with."""
    return Path(shutil.copytree(honest, tmp_path / "run"))


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return fairwall("verify", *arguments, seconds=300)


def test_a_reveal_game_is_well(honest: Path) -> None:
    finished = command(honest)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "no findings: 4 transcripts" in finished.stdout
    told = json.loads(command(honest, "--json").stdout)
    assert told["well"] is True
    assert told["findings"] == []
    assert told["columns"] == 2
    assert told["searched_bytes"] > 1000


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the extra for training")
@pytest.mark.check
def test_an_inference_game_is_well_and_its_declaration_is_listed(tmp_path: Path) -> None:
    found = verify(run(tmp_path, INFERENCE))
    assert found.findings == ()
    assert "exempt: groups that developer holds in deals that declare it: 1" in found.notes


def test_a_folder_that_is_no_run_is_one_line(tmp_path: Path) -> None:
    finished = command(tmp_path)
    assert finished.returncode == 2
    assert finished.stderr.startswith(f"fairwall: {tmp_path}: not a run's folder: it has no scenario.toml; name one")
    assert finished.stderr.count("\n") == 1


@pytest.mark.check
@pytest.mark.parametrize("mode", ["none", "digest"])
def test_a_run_says_how_it_records(tmp_path: Path, mode: str) -> None:
    folder = run(tmp_path, REVEAL.replace('name = "small"', f'name = "small"\nrecord = "{mode}"'))
    finished = command(folder)
    if mode == "none":
        assert not (folder / "transcript").exists()
        assert (finished.returncode, finished.stdout) == (2, "")
        assert "nothing was recorded" in finished.stderr
    else:
        assert finished.returncode == 0, finished.stdout
        script = read(folder / "transcript" / "compliance" / "1.bin")
        large = [message for message in script.messages if message.large]
        assert large
        assert not any(script.stores(digest) for message in large for _, _, digest in message.large)


# Files.


def places(folder: Path, times: int, seed: int) -> list[tuple[Path, int]]:
    """Random places in a run's transcripts, every byte as likely as any other."""
    rng = random.Random(seed)  # noqa: S311 - nothing secret
    scripts = sorted((folder / "transcript").glob("*/*.bin"))
    sizes = [path.stat().st_size for path in scripts]
    return [(path, rng.randrange(path.stat().st_size)) for path in rng.choices(scripts, sizes, k=times)]


def with_changed_byte(path: Path, place: int, check: Callable[[], bool]) -> bool:
    data = path.read_bytes()
    path.write_bytes(data[:place] + bytes([data[place] ^ (1 + place % 255)]) + data[place + 1 :])
    try:
        return check()
    finally:
        path.write_bytes(data)


def test_a_changed_byte_is_found_wherever_it_is(copied: Path) -> None:
    """Hundreds of places: the chain alone finds each, without what the run says of its end."""
    for path, place in places(copied, 300, seed=1):
        assert with_changed_byte(path, place, lambda path=path: not read(path).is_whole), (path, place)  # type: ignore[misc]


@pytest.mark.check
def test_verify_names_the_file_that_was_changed(copied: Path) -> None:
    for path, place in places(copied, 10, seed=2):
        found: list[VerifyFinding] = []
        with_changed_byte(path, place, lambda found=found: bool(found.extend(verify(copied).findings)))  # type: ignore[misc]
        name = path.relative_to(copied).as_posix()
        assert VerifyFinding("file", name, "is not what it was when the run ended") in found
        assert any(finding.check in ("chain", "open") and finding.where.startswith(name) for finding in found)


def test_every_other_file_is_anchored_too(copied: Path) -> None:
    names = ("trials.jsonl", "scenario.toml", "logs/developer.log")
    for name in names:
        (copied / name).write_bytes((copied / name).read_bytes() + b"\n")
    changed = {VerifyFinding("file", name, "is not what it was when the run ended") for name in names}
    assert changed <= {*verify(copied).findings}


def test_a_changed_summary_is_found(copied: Path) -> None:
    result = json.loads((copied / "result.json").read_text())
    result["summary"][0]["leakage"] += 1
    (copied / "result.json").write_text(json.dumps(result))
    text = "sums up other trials than trials.jsonl holds"
    assert verify(copied).findings == (VerifyFinding("file", "result.json", text),)


@pytest.mark.parametrize("line", [{"game": "inference", "attack": "kl"}, {"game": []}])
def test_a_line_that_is_no_trial_s_is_found(copied: Path, line: dict[str, Any]) -> None:
    with (copied / "trials.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    found = verify(copied)
    assert VerifyFinding("file", "trials.jsonl", "holds lines that cannot be summed up") in found.findings
    assert any(
        note.startswith("not checked: report.html: no report can be made of its files: ") for note in found.notes
    )


@pytest.mark.parametrize(("name", "text"), [("trials.jsonl", '{"game": "reveal"}\n'), ("result.json", "[]")])
def test_of_files_that_are_no_run_s_no_report_is_made(copied: Path, name: str, text: str) -> None:
    (copied / name).write_text(text)
    done = fairwall("report", copied)
    assert (done.returncode, done.stdout) == (2, "")
    told = f"fairwall: {copied}: trials.jsonl or result.json is not as a run of its scenario writes it\n"
    assert done.stderr == told


def with_page(folder: Path, change: Callable[[str], str]) -> Verification:
    """Change the report, and say what verify finds."""
    page = folder / "report.html"
    before = page.read_text(encoding="utf-8")
    after = change(before)
    assert after != before
    page.write_text(after, encoding="utf-8")
    return verify(folder)


@pytest.mark.check
def test_a_report_with_another_figure_in_its_table_is_named(copied: Path) -> None:
    """The page is anchored nowhere: it is written again from what is."""
    (found,) = with_page(
        copied, lambda page: re.sub(r'(<td [^>]*class="number"[^>]*>)[^<]+', r"\g<1>12345", page, count=1)
    ).findings
    assert (found.check, found.where) == ("file", "report.html")
    assert re.match(r"is not what follows from trials.jsonl and result.json: line \d+ has '", found.text)
    assert "12345" in found.text


def test_a_report_that_leaves_out_a_warning_is_named(copied: Path) -> None:
    def cut(page: str) -> str:
        return re.sub(r"<dt>Layers of confinement that were active</dt>\s*<dd>.*?</dd>", "", page, flags=re.DOTALL)

    assert [finding.where for finding in with_page(copied, cut).findings] == ["report.html"]


MOVED = (r'(<path d="M )[0-9.]+', r"\g<1>1.5")


@pytest.mark.check
def test_a_report_with_another_drawing_is_named(copied: Path) -> None:
    (found,) = with_page(copied, lambda page: re.sub(*MOVED, page, count=1)).findings
    assert (found.check, found.where) == ("file", "report.html")
    assert found.text.startswith("has a figure that does not follow from trials.jsonl: line ")


@pytest.mark.check
def test_drawings_of_other_kernels_are_not_compared(copied: Path) -> None:
    page = copied / "report.html"
    page.write_text(re.sub(*MOVED, page.read_text(), count=1))

    def found(change: Callable[[Transcript], object]) -> tuple[list[VerifyFinding], list[str]]:
        scripts, notes = [read(path) for path in paths(copied)], list[str]()
        for script in scripts:
            change(script)
        return [*changed_page(copied, scripts, notes)], notes

    def called_otherwise(script: Transcript) -> None:
        assert script.header is not None
        script.header.versions.add(name="cpu", version="an abacus")

    findings, notes = found(called_otherwise)
    assert [finding.where for finding in findings] == ["report.html"]
    assert notes == []
    findings, (note,) = found(lambda script: script.numerics.update({"kernels of numpy": "an abacus"}))
    assert findings == []
    assert "which were drawn with kernels of numpy an abacus, not " in note
    findings, (note,) = found(lambda script: script.numerics.clear())
    assert findings == []
    assert "which were drawn with kernels that were not recorded" in note


@pytest.mark.check
def test_drawings_of_another_matplotlib_are_not_compared_but_all_else_is(copied: Path) -> None:
    def drawn_otherwise(page: str) -> str:
        return re.sub("matplotlib [0-9.]+", "matplotlib 2.0.0", re.sub(*MOVED, page))

    found = with_page(copied, drawn_otherwise)
    assert found.findings == ()
    (note,) = (note for note in found.notes if "report.html" in note)
    assert note.startswith("not checked: the figures of report.html, which were drawn with matplotlib 2.0.0, not ")
    (found_again,) = with_page(copied, lambda page: page.replace("<td", "<td ", 1)).findings
    assert found_again.where == "report.html"


def test_what_cannot_be_compared_of_a_report_is_noted(copied: Path) -> None:
    result = json.loads((copied / "result.json").read_text())
    (copied / "result.json").write_text(json.dumps(result | {"version": "0.0.1"}))
    found = with_page(copied, lambda page: page.replace("<td", "<td ", 1))
    assert any(note.startswith("not checked: report.html, which fairwall 0.0.1 wrote") for note in found.notes)
    (copied / "result.json").write_text(json.dumps(result))
    (copied / "report.html").unlink()
    assert "not checked: report.html, which is not there" in verify(copied).notes


def anchored_anew(folder: Path, **values: Any) -> None:
    """Change ``result.json``, and have it hold the ends and digests of the files as they are now."""
    result = json.loads((folder / "result.json").read_text())
    result |= {"files": digests(folder), "transcripts": anchors(folder)} | values
    (folder / "result.json").write_text(json.dumps(result))


WALLS = {"name": "landlock", "active": True, "why_not": ""}


def confined(folder: Path, starts: list[dict[str, Any]]) -> list[VerifyFinding]:
    """Say otherwise what confined the parties, in the result and in the report that follows from it."""
    anchored_anew(folder, confinement=starts)
    write_report(folder)
    return list(verify(folder).findings)


@pytest.mark.check
def test_layers_other_than_a_party_recorded_are_named(copied: Path) -> None:
    (start,) = json.loads((copied / "result.json").read_text())["confinement"]
    limits = start["developer"][0] | {"active": not start["developer"][0]["active"], "why_not": "no such thing"}
    (found,) = confined(copied, [start | {"developer": [limits, *start["developer"][1:]]}])
    assert (found.check, found.where) == ("reported", "result.json")
    assert found.text.startswith("confinement: developer was confined by limits (not active: no such thing), ")
    assert ", and its transcript says limits, " in found.text
    for party in ("referee", "compliance", "adversary"):
        (found,) = confined(copied, [start | {party: [*start[party], WALLS]}])
        assert found.text.startswith(f"confinement: {party} was confined by ")
    (found,) = confined(copied, [{name: layers for name, layers in start.items() if name != "developer"}])
    assert found.text.startswith("confinement: developer was confined by no layers, ")
    assert confined(copied, [start]) == []


@pytest.mark.check
@pytest.mark.parametrize("times", [0, 2])
def test_starts_that_are_left_out_or_made_up_are_named(copied: Path, times: int) -> None:
    starts = json.loads((copied / "result.json").read_text())["confinement"] * times
    text = f"confinement: parties were started {times} times, and their transcripts tell of 1"
    assert confined(copied, starts) == [VerifyFinding("reported", "result.json", text)]


@pytest.mark.parametrize("starts", [None, [{"developer": "landlock"}]])
def test_confinement_that_is_none_is_named(copied: Path, starts: Any) -> None:
    anchored_anew(copied, confinement=starts)
    checks = {finding.where for finding in verify(copied).findings}
    assert "result.json" in checks


def test_of_transcripts_that_do_not_say_what_confined_their_parties_it_is_noted(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.call("developer", "compliance", TERMS, [audit.GetTermsRequest()], [audit.GetTermsResponse()])
    for recorder in table.recorders.values():
        recorder.close()
    (tmp_path / "result.json").write_text(json.dumps({"files": {"x": ""}, "confinement": []}))
    assert "not checked: what confined the parties, which their transcripts do not say" in verify(tmp_path).notes


def test_another_party_s_transcript_under_this_name_is_named(copied: Path) -> None:
    shutil.copy(copied / "transcript" / "developer" / "1.bin", copied / "transcript" / "adversary" / "1.bin")
    anchored_anew(copied)
    text = "says that it is developer's"
    assert VerifyFinding("chain", "transcript/adversary/1.bin entry 0", text) in verify(copied).findings


@pytest.mark.check
def test_another_run_s_transcripts_are_named(copied: Path, tmp_path: Path) -> None:
    other = run(tmp_path, REVEAL)
    run_id, other_id = (json.loads((folder / "result.json").read_text())["run"] for folder in (copied, other))
    for party in ("compliance", "developer", "adversary", "referee"):
        shutil.copy(other / "transcript" / party / "1.bin", copied / "transcript" / party / "1.bin")
    anchored_anew(copied)
    texts = [finding.text for finding in verify(copied).findings]
    assert f"is of run {other_id}, and result.json of {run_id}" in texts


def test_a_scenario_that_was_not_played_is_named(copied: Path) -> None:
    """It may say anything of how the run was played that no message speaks of."""
    scenario = copied / "scenario.toml"
    scenario.write_text(scenario.read_text().replace('about = ""', 'about = "as published"'))
    anchored_anew(copied, scenario_digest=read_sweep(str(scenario)).digest)
    write_report(copied)
    texts = {finding.text for finding in verify(copied).findings}
    assert texts == {"was written for another scenario than scenario.toml, or under another key"}


@pytest.mark.check
@pytest.mark.parametrize("said", [False, 1])
def test_a_run_that_was_not_played_to_its_end_is_found(copied: Path, said: object) -> None:
    anchored_anew(copied, complete=said)
    text = "the run was not played to its end"
    assert VerifyFinding("open", "result.json", text) in verify(copied).findings
    result = json.loads((copied / "result.json").read_text())
    del result["complete"]
    (copied / "result.json").write_text(json.dumps(result))
    assert VerifyFinding("open", "result.json", text) in verify(copied).findings


@pytest.mark.check
def test_a_transcript_that_breaks_off_is_found_though_the_result_says_so_too(copied: Path) -> None:
    path = copied / "transcript" / "developer" / "1.bin"
    path.write_bytes(path.read_bytes()[:-36])
    anchored_anew(copied)
    (found,) = verify(copied).findings
    assert (found.check, found.where) == ("open", "transcript/developer/1.bin")


def test_a_transcript_that_ends_early_is_found_and_named(copied: Path) -> None:
    """A chain of digests alone cannot tell that its last entries are gone, but the anchor and the counterparts can."""
    path = copied / "transcript" / "developer" / "1.bin"
    path.write_bytes(path.read_bytes()[:-36])
    found = verify(copied).findings
    assert {finding.check for finding in found} == {"file", "chain", "open"}
    (open_,) = (finding for finding in found if finding.check == "open")
    assert open_.where == "transcript/developer/1.bin"
    assert "breaks off after" in open_.text


@pytest.mark.check
@pytest.mark.parametrize(
    "party", ["developer", *(pytest.param(name, marks=pytest.mark.slow) for name in ("compliance", "adversary"))]
)
def test_a_party_that_was_killed_leaves_a_prefix_that_is_reported_as_open(live_run: Any, party: str) -> None:
    live_run.parties[party].kill()
    live_run.command.communicate(timeout=300)
    (folder,) = live_run.folder.iterdir()
    script = read(folder / "transcript" / party / "1.bin")
    assert script.messages
    assert not script.problems
    assert not script.closed
    found = verify(folder).findings
    assert {finding.check for finding in found} == {"open"}
    assert f"transcript/{party}/1.bin" in {finding.where for finding in found}


# Games that were not played by the rules: written down as an honest recorder would have.


class Table:
    """Records calls on both sides, or on one."""

    def __init__(self, folder: Path, **unlike: Mapping[str, str]) -> None:
        """Begin the transcripts; a party may be given another run, scenario or mode than the others have."""
        self.folder = folder
        (folder / "scenario.toml").write_text("")
        self.recorders = {}
        for party in ("compliance", "developer", "adversary", "referee"):
            begin = {"run": "run", "scenario_digest": "digest", "mode": "full", **unlike.get(party, {})}
            self.recorders[party] = TranscriptRecorder(folder / "transcript" / party / "1.bin", party=party, **begin)

    def call(
        self,
        caller: str,
        server: str,
        method: str,
        requests: Sequence[Any],
        answers: Sequence[Any],
        *,
        heard: Sequence[Any] | None = None,
        skip: str = "",
    ) -> None:
        """Play a call; the caller hears other answers than were given, or one side does not record it."""
        asking = self.recorders[caller].calling(server, method)
        answering = self.recorders[server].answering(caller, method, [(CALL_KEY, str(asking.call.number))])
        for message in requests:
            if skip != caller:
                asking.sent(_bytes(message))
            if skip != server:
                answering.received(_bytes(message))
        for message in answers:
            if skip != server:
                answering.sent(_bytes(message))
        for message in answers if heard is None else heard:
            if skip != caller:
                asking.received(_bytes(message))
        for side, party in ((answering, server), (asking, caller)):
            if skip != party:
                side.ended()

    def findings(self) -> list[VerifyFinding]:
        """Close all, and say what verify finds, but for the missing result."""
        for recorder in self.recorders.values():
            recorder.close()
        return [finding for finding in verify(self.folder).findings if finding.where != "result.json"]


def _bytes(message: Any) -> bytes:
    return message if isinstance(message, bytes) else bytes(message.SerializeToString())


def group(people: int, share: float = 0.3, seed: int = 5) -> NDArray[np.uint8]:
    return (np.random.default_rng(seed).random(people) < share).astype(np.uint8)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def deal_compliance(table: Table, protected: NDArray[np.uint8], deal_id: str = "deal-1") -> None:
    response = game.TakeComplianceDealResponse
    deal = game.ComplianceDeal(deal_id=deal_id, audits=game.AuditCards(protected=header_of(protected)))
    half = len(protected) // 2
    parts = [protected[:half].tobytes(), protected[half:].tobytes()]
    chunks = [response(protected_chunk=part) for part in parts]
    request = game.TakeComplianceDealRequest()
    table.call("compliance", "referee", f"{REFEREE}TakeComplianceDeal", [request], [response(deal=deal), *chunks])


def deal_developer(
    table: Table, features: NDArray[Any], cuts: Sequence[int] = (), deal_id: str = "deal-1", **fields: Any
) -> None:
    response, data = reveal_pb2.TakeDeveloperDealResponse, features.tobytes()
    deal = reveal_pb2.DeveloperDeal(deal_id=deal_id, features=header_of(features), **fields)
    ends = [0, *cuts, len(data)]
    chunks = [response(features_chunk=data[start:end]) for start, end in pairwise(ends)]
    request = reveal_pb2.TakeDeveloperDealRequest()
    table.call("developer", "referee", f"{REVEALS}TakeDeveloperDeal", [request], [response(deal=deal), *chunks])


def test_an_honest_table_is_well(table: Table) -> None:
    deal_compliance(table, group(100))
    deal_developer(table, np.random.default_rng(0).random((100, 7)))
    assert table.findings() == []


def test_a_message_that_was_changed_on_its_way_is_named(table: Table) -> None:
    answers = [audit.GetTermsResponse(people=people) for people in (100, 101)]
    request = audit.GetTermsRequest(deal_id="d")
    table.call("developer", "compliance", TERMS, [request], answers[:1])
    table.call("developer", "compliance", TERMS, [request], answers[:1], heard=answers[1:])
    (found,) = table.findings()
    assert found.check == "counterpart"
    assert found.where == "transcript/developer/1.bin entry 6"
    assert found.text.startswith("call 2 of developer to compliance, message 0: is not what compliance sent")


@pytest.mark.parametrize(
    ("heard", "text"), [((0, 1, 0), "did not record that it sent"), ((0,), "did not record that it got")]
)
def test_a_message_that_one_side_does_not_know_is_named(table: Table, heard: Sequence[int], text: str) -> None:
    parts = [reveal_pb2.TakeDeveloperDealResponse(labels_chunk=bytes([number])) for number in range(2)]
    request = reveal_pb2.TakeDeveloperDealRequest()
    told = [parts[number] for number in heard]
    table.call("developer", "referee", f"{REVEALS}TakeDeveloperDeal", [request], parts, heard=told)
    assert [finding.check for finding in table.findings() if text in finding.text] == ["counterpart"]


@pytest.mark.parametrize("silent", ["developer", "compliance"])
def test_a_call_that_one_side_did_not_record_is_named(table: Table, silent: str) -> None:
    request, answer = audit.GetTermsRequest(deal_id="d"), audit.GetTermsResponse(people=3)
    table.call("developer", "compliance", TERMS, [request], [answer], skip=silent)
    (found,) = table.findings()
    assert found.check == "counterpart"
    assert found.text == f"call 1 of developer to compliance (GetTerms): {silent} recorded no such call"


def test_a_call_that_is_another_method_to_each_side_is_named(table: Table) -> None:
    request, answer = _bytes(audit.GetTermsRequest(deal_id="d")), _bytes(audit.GetTermsResponse(people=3))
    asking = table.recorders["developer"].calling("compliance", TERMS)
    answering = table.recorders["compliance"].answering("developer", f"{TERMS}s", [(CALL_KEY, "1")])
    for side in (asking, answering):
        side.sent(request if side is asking else answer)
        side.received(answer if side is asking else request)
        side.ended()
    text = "call 1 of developer to compliance is GetTerms to one side and GetTermss to the other"
    where = "transcript/developer/1.bin"
    assert [found for found in table.findings() if found.check == "counterpart"] == [
        VerifyFinding("counterpart", where, text)
    ]


def test_a_call_that_changes_its_method_is_named(table: Table) -> None:
    request, answer = audit.GetTermsRequest(deal_id="d"), audit.GetTermsResponse(people=3)
    table.call("developer", "compliance", TERMS, [request], [])
    other = table.recorders["developer"].calling("compliance", "/fairwall.compliance.v1.AuditService/AuditModels")
    other.call.number = 1
    other.received(_bytes(answer))
    texts = [finding.text for finding in table.findings() if finding.check == "counterpart"]
    assert texts[0] == "call 1 of developer to compliance has two methods"


@pytest.mark.parametrize(
    ("unlike", "text"),
    [
        ({"run": "another"}, "were written in different runs"),
        ({"scenario_digest": "another"}, "were written for different scenarios"),
        ({"mode": "digest"}, "were written in different ways"),
    ],
)
def test_a_party_that_recorded_something_else_is_named(tmp_path: Path, unlike: Mapping[str, str], text: str) -> None:
    found = Table(tmp_path, developer=unlike).findings()
    assert found == [VerifyFinding("chain", "transcript", f"adversary, compliance, referee; developer: {text}")]


def test_parties_that_all_recorded_less_than_the_scenario_says_are_named(tmp_path: Path) -> None:
    parties = ("compliance", "developer", "adversary", "referee")
    table = Table(tmp_path, **{party: {"mode": "digest"} for party in parties})
    (tmp_path / "scenario.toml").write_text('[scenario]\nrecord = "full"\n')
    text = 'was recorded as "digest", and scenario.toml says record = "full"'
    assert table.findings() == [VerifyFinding("chain", "transcript", text)]


def test_bytes_that_a_full_transcript_does_not_store_are_named(table: Table) -> None:
    """What is not stored is not searched: a party cannot choose so."""
    table.recorders["developer"]._stores = False
    deal_compliance(table, A)
    deal_developer(table, A.astype(np.float64).repeat(10).reshape(100, -1))
    (found,) = table.findings()
    assert (found.check, found.text) == ("chain", "refers to bytes that are not stored before it")
    assert found.where.startswith("transcript/developer/1.bin entry ")


def test_a_caller_that_numbers_nothing_is_named(table: Table) -> None:
    stranger = table.recorders["compliance"].answering("developer", TERMS, [])
    stranger.received(_bytes(audit.GetTermsRequest(deal_id="d")))
    stranger.ended()
    (found,) = table.findings()
    assert (found.check, found.where) == ("counterpart", "transcript/compliance/1.bin")


def test_a_missing_transcript_is_named(table: Table) -> None:
    deal_developer(table, np.zeros((3, 2)))
    (table.folder / "transcript" / "referee" / "1.bin").unlink()
    found = table.findings()
    assert {(finding.check, finding.where) for finding in found} == {("counterpart", "transcript/referee")}


def test_a_message_above_its_receivers_clearance_is_named(table: Table) -> None:
    deal = reveal_pb2.DeveloperDeal(deal_id="deal-1", labels=header_of(np.zeros(3, np.uint8)))
    answer = reveal_pb2.TakeDeveloperDealResponse(deal=deal)
    request = reveal_pb2.TakeDeveloperDealRequest()
    table.call("adversary", "referee", f"{REVEALS}TakeDeveloperDeal", [request], [answer])
    texts = [finding.text for finding in table.findings() if finding.check == "allowed"]
    assert f"adversary may not call {REVEALS}TakeDeveloperDeal" in texts
    assert "fairwall.game.v1.DeveloperDeal.labels is DEVELOPMENT, and reached adversary" in texts
    assert not any("deal_id" in text for text in texts)


@pytest.mark.parametrize("more", [b"\xfa\x3f\x03abc", b"\x98\x3f\x01"])
def test_a_field_that_the_protocol_does_not_know_is_named(table: Table, more: bytes) -> None:
    answer = _bytes(audit.GetTermsResponse(people=3)) + more
    table.call("developer", "compliance", TERMS, [audit.GetTermsRequest(deal_id="d")], [answer])
    (found,) = table.findings()
    assert found.check == "allowed"
    assert "is unknown to the protocol, and reached developer" in found.text


def test_what_is_no_message_of_its_method_is_named(table: Table) -> None:
    table.call("developer", "compliance", TERMS, [audit.GetTermsRequest(deal_id="d")], [b"\xff\xff"])
    (found,) = table.findings()
    assert (found.check, found.text) == ("allowed", "is no message of GetTerms")


# Leaks.

A = group(100)
FLIPPED = (1 - A).astype(np.uint8)
ENCODINGS: dict[str, bytes] = {
    "bytes": A.tobytes(),
    "bytes, other polarity": FLIPPED.tobytes(),
    "bits, first bit first": np.packbits(A).tobytes(),
    "bits, last bit first": np.packbits(A, bitorder="little").tobytes(),
    "bits, other polarity": np.packbits(FLIPPED).tobytes(),
    "bits that begin in the middle of a byte": np.packbits(np.concatenate(([1, 0, 1], A))).tobytes(),
    "float64": A.astype("<f8").tobytes(),
    "float32, big-endian": A.astype(">f4").tobytes(),
    "float64, -1 and 1": (2.0 * A - 1).tobytes(),
    "int16": A.astype("<i2").tobytes(),
    "int64, other polarity": FLIPPED.astype("<i8").tobytes(),
    "text": "".join(map(str, A)).encode(),
    "letters": "".join("MF"[value] for value in A).encode(),
    "a list": json.dumps(A.tolist()).encode(),
    "a list without spaces": json.dumps(A.tolist(), separators=(",", ":")).encode(),
    "a list of floats": json.dumps(A.astype(float).tolist()).encode(),
    "lines": "\n".join(map(str, A)).encode(),
    "bytes, from the last row on": A[::-1].tobytes(),
    "bits, from the last row on": np.packbits(A[::-1]).tobytes(),
    "float64, from the last row on": A[::-1].astype("<f8").tobytes(),
    "two of four values a row, as a repeated field has them": b"".join(b"\x0a\x01" + bytes([value]) for value in A),
}


@pytest.mark.parametrize("place", ["within random bytes", pytest.param("alone", marks=pytest.mark.check)])
def test_a_planted_column_is_found_in_every_encoding(tmp_path: Path, place: str) -> None:
    for number, (encoding, planted) in enumerate(ENCODINGS.items()):
        (tmp_path / str(number)).mkdir()
        table = Table(tmp_path / str(number))
        deal_compliance(table, A)
        rng = np.random.default_rng(1)
        before, after = (rng.bytes(size) for size in ((37, 410) if place != "alone" else (0, 0)))
        deal_developer(table, rng.random((100, 3)), seed=before + planted + after)
        found = table.findings()
        assert found, encoding
        assert {finding.check for finding in found} == {"protected"}, encoding
        assert all("developer received what it must not" in finding.text for finding in found), encoding
        assert all("protected 0 of deal-1" in finding.text for finding in found), encoding


@pytest.mark.parametrize(("kind", "people"), [(np.float64, 100), (np.float32, 3000), (np.uint8, 100)])
def test_a_planted_feature_is_found_across_chunks(table: Table, kind: type[np.generic], people: int) -> None:
    """The column of a table: a value a row, rows far apart, cut wherever chunks break."""
    protected = group(people)
    deal_compliance(table, protected)
    features = np.random.default_rng(1).integers(0, 100, (people, 13)).astype(kind)
    features[:, 5] = np.where(protected, 3, 7).astype(kind)
    deal_developer(table, features, cuts=[people * 5, people * 9 + 1])
    found = table.findings()
    assert {finding.check for finding in found} == {"protected"}
    assert "features holds protected 0 of deal-1" in found[0].text


def test_what_arrives_time_and_again_is_named_once(table: Table) -> None:
    protected = group(100)
    deal_compliance(table, protected)
    features = np.random.default_rng(1).integers(0, 100, (100, 13)).astype(np.float64)
    features[:, 5] = protected
    for number in (1, 2, 3):
        deal_developer(table, features, deal_id=f"deal-{number}")
    calls = {finding.where for finding in table.findings()}
    assert calls == {"transcript/developer/1.bin entry 3 (call 1 of developer to referee, TakeDeveloperDeal)"}


def test_a_column_that_leaks_a_bit_at_a_time_is_not_claimed_to_be_found_but_one_in_the_adversarys_model_is(
    table: Table,
) -> None:
    deal_compliance(table, A)
    response = reveal_pb2.TakeAdversaryDealResponse(
        deal=reveal_pb2.AdversaryDeal(deal_id="deal-1", attack="".join(map(str, A)), disadvantaged_rows=3)
    )
    table.call(
        "adversary", "referee", f"{REVEALS}TakeAdversaryDeal", [reveal_pb2.TakeAdversaryDealRequest()], [response]
    )
    (found,) = {finding.text.partition(":")[0] for finding in table.findings()}
    assert found == "adversary received what it must not"


def test_a_guess_is_the_developers_own(table: Table) -> None:
    deal_compliance(table, A)
    request = reveal_pb2.SubmitRevealRequest(deal_id="deal-1", guess={"header": header_of(A), "data": A.tobytes()})  # type: ignore[arg-type]
    table.call("developer", "referee", f"{REVEALS}SubmitReveal", [request], [reveal_pb2.SubmitRevealResponse()])
    assert table.findings() == []


def training_deal(
    table: Table,
    *,
    declared: bool,
    heard: bool | None = None,
    values: NDArray[np.uint8] = A,
    deal_id: str = "deal-1",
) -> None:
    """Deal the developer its groups; it hears another declaration than was made where ``heard`` says so."""
    response, groups = inference.TakeTrainingDealResponse, values.reshape(1, -1)
    parts = [
        [
            response(deal=inference.TrainingDeal(deal_id=deal_id, groups=header_of(groups), holds_protected=holds)),
            response(groups_chunk=groups.tobytes()),
        ]
        for holds in (declared, declared if heard is None else heard)
    ]
    method = "/fairwall.game.v1.InferenceService/TakeTrainingDeal"
    table.call("developer", "referee", method, [inference.TakeTrainingDealRequest()], parts[0], heard=parts[1])


def test_groups_that_a_deal_declares_are_exempt_and_others_are_not(tmp_path: Path) -> None:
    for declared in (True, False):
        folder = tmp_path / str(declared)
        folder.mkdir()
        table = Table(folder)
        training_deal(table, declared=declared)
        assert {finding.check for finding in table.findings()} == (set() if declared else {"protected"})


@pytest.mark.parametrize("compliances", [False, True], ids=["the developer's alone", "compliance's too"])
def test_groups_that_one_deal_declares_are_sought_in_every_other(table: Table, *, compliances: bool) -> None:
    training_deal(table, declared=True)
    if compliances:
        deal_compliance(table, A, "deal-2")
    deal_developer(table, A.astype(np.float64).reshape(-1, 1), deal_id="deal-2")
    found = table.findings()
    (entry,) = {finding.where for finding in found}
    assert "TakeDeveloperDeal" in entry, "the deal that declares them is exempt"
    name = "protected 0 of deal-2" if compliances else "groups 0 of deal-1"
    assert all(f"holds {name} from" in finding.text for finding in found)


def test_the_same_bytes_are_exempt_where_they_are_declared_and_found_where_they_are_not(table: Table) -> None:
    training_deal(table, declared=True)
    training_deal(table, declared=False, deal_id="deal-2")
    found = table.findings()
    assert found
    assert all("groups 0 of deal-2" in finding.text for finding in found)


def test_a_column_that_only_the_receiver_says_it_may_hold_is_found(table: Table) -> None:
    training_deal(table, declared=False, heard=True)
    assert {finding.check for finding in table.findings()} == {"counterpart", "protected"}


def test_trials_that_share_people_raise_no_alarm(table: Table) -> None:
    for number, people in enumerate((60, 100)):
        training_deal(table, declared=True, values=A[:people], deal_id=f"deal-{number}")
    assert table.findings() == []


def test_what_the_developer_may_hold_the_adversary_may_not(table: Table) -> None:
    training_deal(table, declared=True)
    response = inference.TakeAttackDealResponse
    parts = [response(deal=inference.AttackDeal(deal_id="deal-1")), response(features_chunk=A.astype("<f8").tobytes())]
    method = "/fairwall.game.v1.InferenceService/TakeAttackDeal"
    table.call("adversary", "referee", method, [inference.TakeAttackDealRequest()], parts)
    found = table.findings()
    assert found
    assert all("adversary received what it must not" in finding.text for finding in found)


@pytest.mark.parametrize(("people", "share", "whole", "within"), [(30, 0.5, True, False), (12, 0.5, False, False)])
def test_few_people_are_sought_only_where_chance_cannot_put_them(
    tmp_path: Path, people: int, share: float, whole: bool, within: bool
) -> None:
    protected = group(people, share)
    for data, found in ((protected, whole), (np.concatenate((protected, [7])).astype(np.uint8), within)):
        folder = tmp_path / str(len(data))
        folder.mkdir()
        table = Table(folder)
        deal_compliance(table, protected)
        deal_developer(table, data)
        assert bool(table.findings()) == found


def test_random_bytes_raise_no_alarm(table: Table) -> None:
    """20 MB a stride: below one false alarm in 10,000 at 2^-40 a place."""
    for seed in range(20):
        deal_compliance(table, group(200, 0.2, seed))
    deal_developer(table, np.random.default_rng(9).integers(0, 2, (50_000, 4)).astype(np.uint8))
    deal_developer(table, np.random.default_rng(9).random((50_000, 5)))
    assert table.findings() == []


@pytest.mark.check
def test_noise_of_the_operating_system_is_kept_by_compliance_alone(tmp_path: Path) -> None:
    folder = run(tmp_path, REVEAL.replace('mechanism = "laplace"', 'mechanism = "laplace"\nnoise = "system"'))
    assert verify(folder).findings == ()
    (log,) = folder.rglob("*draws*")
    assert log.relative_to(folder).as_posix() == "transcript/compliance/1.draws.jsonl"
    laws = [json.loads(line)["law"] for line in log.read_text().splitlines()]
    assert set(laws) == {"laplace"}
    log.write_text(log.read_text() + "\n")
    name = log.relative_to(folder).as_posix()
    assert verify(folder).findings == (VerifyFinding("file", name, "is not what it was when the run ended"),)


def test_a_call_that_was_given_up_may_be_known_to_its_caller_alone(table: Table) -> None:
    call = table.recorders["developer"].calling("compliance", TERMS)
    call.sent(_bytes(audit.GetTermsRequest(deal_id="d")))
    call.ended(grpc.StatusCode.DEADLINE_EXCEEDED.value[0])
    assert table.findings() == []


def test_two_sides_that_tell_another_end_of_a_call_are_named(table: Table) -> None:
    asking = table.recorders["developer"].calling("compliance", TERMS)
    answering = table.recorders["compliance"].answering("developer", TERMS, [(CALL_KEY, "1")])
    request = _bytes(audit.GetTermsRequest(deal_id="d"))
    asking.sent(request)
    answering.received(request)
    asking.ended(5, error_pb2.REASON_DEAL_UNKNOWN)
    answering.ended(9, error_pb2.REASON_OUT_OF_TURN)
    (found,) = table.findings()
    assert found.text == (
        "call 1 of developer to compliance ended as DEAL_UNKNOWN for developer, as OUT_OF_TURN for compliance"
    )


@pytest.mark.parametrize("heard", [1, 3])
def test_messages_of_a_refused_call_that_nobody_read_are_counted(table: Table, heard: int) -> None:
    asking = table.recorders["developer"].calling("compliance", TERMS)
    answering = table.recorders["compliance"].answering("developer", TERMS, [(CALL_KEY, "1")])
    request = _bytes(audit.GetTermsRequest(deal_id="d"))
    for number in range(3):
        asking.sent(request)
        if number < heard:
            answering.received(request)
    for side in (asking, answering):
        side.ended(5, error_pb2.REASON_DEAL_UNKNOWN)
    assert table.findings() == []
    told = [note for note in verify(table.folder).notes if "never read" in note]
    text = "2 messages of calls that were refused or cancelled were never read by their receiver"
    assert told == [text] * (heard == 1)
