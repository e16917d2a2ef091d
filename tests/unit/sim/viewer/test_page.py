"""The page of a run: every message once under the entries that a replay names, every blob once, and no way out."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blake3 import blake3

from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.rpc.arrays import to_message
from fairwall.wire.v1.error_pb2 import REASON_BUDGET_EXHAUSTED
from sim.games import read as read_scenario
from sim.games.game import Line
from sim.replay.differences import first_difference
from sim.report.columns import Measure
from sim.transcripts.calls import calls
from sim.transcripts.captions import Story, number, shared
from sim.transcripts.files import paths, read
from sim.viewer.blocks import Blobs, Blocks
from sim.viewer.document import program
from sim.viewer.fields import Fields
from sim.viewer.page import Other, ViewError, _outcome, cells_of, open_run, page
from tests.support.recorded_runs import AUDIT, Said, audited, record
from tests.support.viewer_page import Viewed

GOLDEN = Path(__file__).parents[3] / "golden"
JOIN = "/fairwall.game.v1.RefereeService/Join"
HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(1)> \u2028 \" ' & \x00"


@pytest.fixture(scope="module", params=["reveal", "inference"])
def golden(request: pytest.FixtureRequest) -> Path:
    return GOLDEN / str(request.param)


@pytest.fixture(scope="module")
def whole(golden: Path) -> Viewed:
    return viewed(golden)


def viewed(folder: Path, **asked: Any) -> Viewed:
    return Viewed(page(open_run(folder), **asked))


def asked(number: int = 1, epsilon: float = 0.1, deal: str = "deal-1", values: Any = (1.0, 0.0)) -> Said:
    return audited(number, np.asarray([values], np.float64), deal=deal, epsilon=epsilon)


def test_every_message_stands_once_under_its_entries_in_both_transcripts(golden: Path, whole: Viewed) -> None:
    entries: dict[str, list[tuple[int, str]]] = {}
    for row, details in whole.messages():
        for party, (first, last) in details["entries"].items():
            entries.setdefault(party, []).extend((entry, row["method"]) for entry in range(first, last + 1))
    for path in paths(golden):
        script = read(path)
        told = [
            message for call in calls(script) if not call.is_poll(script) for message in (*call.requests, *call.answers)
        ]
        shown = entries[script.party]
        assert len(shown) == len(set(shown))
        assert {(message.entry, message.method.rpartition("/")[2]) for message in told} <= set(shown)


def test_the_entry_that_a_replay_names_leads_to_its_message(tmp_path: Path) -> None:
    ways = {"a": record(tmp_path / "a", [asked(1), asked(2)]), "b": record(tmp_path / "b", [asked(1), asked(2, 0.2)])}
    one, other = (open_run(folder) for folder in ways.values())
    difference = first_difference(one.sessions["1"], other.sessions["1"], bit_for_bit=True)
    assert difference is not None
    assert difference.entry is not None
    told = Viewed(page(one, other=Other("b", other.sessions)))
    found = told.index["beside"]["difference"]
    assert found["text"] == str(difference)
    trial, message = found["at"]
    details = told.details(told.trials[0])[message - 1]
    assert trial == "1"
    assert details["entries"][difference.party][0] <= difference.entry <= details["entries"][difference.party][1]
    here, there = (told.rows(trials[0]) for trials in (told.trials, told.index["beside"]["trials"]))
    assert [row["digest"] == other["digest"] for row, other in zip(here, there, strict=True)] == [
        True,
        True,
        False,
        False,
    ]


def test_a_run_beside_itself_does_not_differ(golden: Path) -> None:
    told = viewed(golden, other=Other("itself", open_run(golden).sessions))
    assert told.index["beside"]["difference"] is None
    assert [told.rows(one) for one in told.trials] == [told.rows(one) for one in told.index["beside"]["trials"]]


def test_a_blob_is_in_the_page_once_however_often_it_was_sent(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    few, many = rng.random(100), rng.random(40_000)
    told = viewed(record(tmp_path / "run", [asked(n, values=values) for n in range(3) for values in (few, many)]))
    for values in (few, many):
        assert sum(block.count(values.tobytes()) for block in told.blocks) == 1
    placed = [
        value["places"]
        for _, details in told.messages()
        for path, _, value in details["fields"]
        if path == "header.predictions"
    ]
    assert [told.bytes_at(places) for places in placed] == 3 * [few.tobytes(), many.tobytes()]


def test_an_array_without_room_is_told_of_by_its_histogram() -> None:
    values = np.linspace(0.0, 1.0, 10_000)
    (listed,) = Fields(lambda *_: None).of([audit.AuditResponse(gaps=to_message(values))])
    about = listed[2]
    assert about["digest"] == blake3(values.tobytes()).hexdigest()
    assert about["shape"] == [10_000]
    assert "places" not in about
    assert about["histogram"][:2] == [0.0, 1.0]
    assert sum(about["histogram"][2]) == len(values)
    assert len(about["first"]) == 100


def test_blobs_take_no_more_room_than_they_have() -> None:
    blocks = Blocks()
    blobs = Blobs(blocks, 200_000)
    placed = [blobs.put(bytes([n]), np.random.default_rng(n).bytes(40_000)) for n in range(10)]
    blobs.close()
    assert [place is not None for place in placed] == 3 * [True] + 7 * [False]
    assert blocks.size <= 200_000


def test_arrays_that_were_recorded_by_digest_say_so(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random(5000)
    told = viewed(record(tmp_path / "run", [asked(values=values)], mode="digest"))
    (value,) = (value for path, _, value in told.details(told.trials[0])[0]["fields"] if path == "header.predictions")
    assert value["by_digest"]
    assert value["digest"] == blake3(values.tobytes()).hexdigest()
    assert "digest only" in told.trials[0]["record"]


def test_what_the_two_sides_recorded_otherwise_is_a_finding_and_shows_both_copies(tmp_path: Path) -> None:
    one, other = asked(1), asked(1, epsilon=0.5)
    folder = record(
        tmp_path / "run", [Said(one.caller, one.server, AUDIT, one.requests, one.answers, heard=other.requests)]
    )
    told = viewed(folder)
    (finding,) = (one for one in told.index["checked"]["findings"] if one["check"] == "counterpart")
    trial, message = finding["at"]
    details = told.details(told.trials[0])[message - 1]
    assert (trial, details["copies"]) == ("1", "differ")
    copies = [{path: value for path, _, value in fields} for fields in (details["fields"], details["other"]["fields"])]
    assert {copy["header.epsilon"] for copy in copies} == {"0.1", "0.5"}


def test_a_refusal_is_a_message_that_says_why(tmp_path: Path) -> None:
    one = asked()
    folder = record(tmp_path / "run", [Said(one.caller, one.server, AUDIT, one.requests, (), REASON_BUDGET_EXHAUSTED)])
    told = viewed(folder)
    assert [(row["kind"], row["from"]) for row in told.rows(told.trials[0])] == [
        ("asks", "developer"),
        ("refuses", "compliance"),
    ]
    assert told.rows(told.trials[0])[1]["text"] == "refuses: BUDGET_EXHAUSTED"
    assert told.trials[0]["refused"] == 1


def test_nothing_that_was_recorded_gets_out_of_the_element_that_holds_it(tmp_path: Path) -> None:
    welcome = game.JoinResponse(scenario_digest=HOSTILE)
    said = [Said("developer", "referee", JOIN, [game.JoinRequest()], [welcome]), asked(deal=HOSTILE)]
    told = viewed(record(tmp_path / "run", said, run=HOSTILE.replace("\x00", "")))

    elements: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, _: elements.append(tag)  # type: ignore[method-assign]
    parser.feed(told.text)
    assert elements.count("script") == 2 + len(told.blocks), "the index, the program, and the blocks"
    assert "img" not in elements
    assert told.index["run"] == HOSTILE.replace("\x00", "")
    assert any(value == HOSTILE for _, details in told.messages() for _, _, value in details["fields"])


def test_the_page_may_fetch_nothing_and_run_nothing_but_its_own_program(whole: Viewed) -> None:
    text = whole.text
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    rules = dict(rule.split(" ", 1) for rule in policy.replace("&#x27;", "'").split("; "))
    assert rules["default-src"] == "'none'"
    for kind, element in (("script", '<script type="module">'), ("style", "<style>")):
        (body,) = re.findall(rf"{re.escape(element)}(.*?)</{kind}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert rules[f"{kind}-src"] == f"'sha256-{digest}'"
    assert set(rules) == {"default-src", "script-src", "style-src", "base-uri", "form-action"}
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)


def test_the_program_is_one_module_in_which_no_name_is_defined_twice() -> None:
    text = program()
    assert not re.search(r"^(?:import|export) ", text, re.MULTILINE)
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", text, re.MULTILINE)
    assert len(names) > 40
    assert len(names) == len(set(names))
    assert "innerHTML" not in text


def test_one_trial_alone_can_be_shown(golden: Path, whole: Viewed) -> None:
    last = whole.trials[-1]
    (only,) = viewed(golden, trial=int(last["id"])).trials
    assert (only["id"], only["messages"]) == (last["id"], last["messages"])
    with pytest.raises(ViewError, match="there is no trial 9"):
        viewed(golden, trial=9)


def test_a_trial_that_was_begun_anew_is_there_twice(tmp_path: Path) -> None:
    folder = record(tmp_path / "run", [asked(1)])
    again = record(tmp_path / "again", [asked(1), asked(2)])
    for party in ("compliance", "developer", "adversary", "referee"):
        shutil.copy(again / "transcript" / party / "1.bin", folder / "transcript" / party / "2.bin")
    told = viewed(folder)
    assert [(one["id"], one["messages"]) for one in told.trials] == [("1", 4), ("1-1", 2)]
    assert "open" in told.trials[1]["record"]


def test_a_trial_for_which_there_is_no_room_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.viewer.page._MESSAGES_BYTES_MAX", 3000)
    many = [asked(n, deal="deal-1") for n in range(100)]
    told = viewed(record(tmp_path / "run", [*many, asked(deal="deal-2")]))
    assert [(one["id"], one["messages"], one["blocks"] is None) for one in told.trials] == [
        ("1", 200, True),
        ("2", 2, False),
    ]


def test_outcomes_have_the_shade_of_their_place_between_least_and_most() -> None:
    headline: Measure[Line] = Measure("leakage", unit="%", scale=(50.0, 100.0))
    lines = [{"leakage": value} for value in (41.7, 50.0, 62.0, 80.0, 99.9, 100.0, float("nan"), None)]
    assert [_outcome(headline, [line]).get("step") for line in lines] == [0, 0, 1, 3, 4, 4, None, None]
    assert _outcome(headline, lines)["value"] == "100%"
    assert _outcome(None, lines) == {}


def test_numbers_are_written_as_people_write_them() -> None:
    for value, text in [
        (1000.0, "1,000"),
        (12345.0, "12,345"),
        (1234.5, "1,230"),
        (1e6, "1,000,000"),
        (0.024390244, "0.0244"),
        (0.00001, "0.00001"),
        (1e-9, "1e-09"),
        (-0.5, "-0.5"),
        (0.0, "0"),
        (float("inf"), "∞"),
    ]:
        assert number(value) == text


def test_cells_and_captions_write_epsilon_in_full() -> None:
    sweep = read_scenario("demo", ["compliance.epsilon=[1000.0, 0.5, inf]", "developer.strategy=best"])
    assert cells_of(sweep) == ["epsilon 1,000", "epsilon 0.5", "epsilon ∞"]
    request = audit.AuditRequest(header=audit.AuditHeader(metric=1, epsilon=1000.0))
    request.header.predictions.shape.extend([2, 3])
    assert shared()["AuditRequest"](Story(), request, None).endswith("ε 1,000")
