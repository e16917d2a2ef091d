"""A page for one party holds nothing above its clearance: not hidden, not compressed, not by digest, not in words."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blake3 import blake3
from google.protobuf.message_factory import GetMessageClass

from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1 import reveal_service_pb2 as reveal
from fairwall.rpc.arrays import header_of, to_message
from sim.transcripts.boundary import CLEARANCE, label_of
from sim.transcripts.methods import METHODS
from sim.verify.byte_search import ByteSearch, SoughtColumn
from sim.viewer.page import Other, ViewError, open_run, page
from sim.viewer.visibility import Sight
from tests.support.recorded_runs import Said, record
from tests.support.viewer_page import Viewed

REFEREE = "/fairwall.game.v1.RefereeService/"
PEOPLE = 120
A = np.zeros(PEOPLE, np.uint8)
A[np.random.default_rng(5).permutation(PEOPLE)[:50]] = 1
COLUMN = SoughtColumn("A", A)


def dealt(to: str) -> Said:
    """Compliance's cards, dealt to compliance or, by a referee that errs, to somebody else."""
    audits = game.AuditCards(labels=header_of(A), protected=header_of(A))
    deal = game.ComplianceDeal(deal_id="deal-1", seed=b"s" * 32, audits=audits)
    parts = [
        game.TakeComplianceDealResponse(deal=deal),
        game.TakeComplianceDealResponse(labels_chunk=bytes(PEOPLE)),
        game.TakeComplianceDealResponse(protected_chunk=A.tobytes()),
    ]
    return Said(to, "referee", f"{REFEREE}TakeComplianceDeal", [game.TakeComplianceDealRequest()], parts)


def guessed() -> Said:
    wrong = 1 - A
    wrong[::3] = 1
    guess = reveal.SubmitRevealRequest(deal_id="deal-1", guess=to_message(wrong), baseline=to_message(wrong))
    method = "/fairwall.game.v1.RevealService/SubmitReveal"
    return Said("developer", "referee", method, [guess], [reveal.SubmitRevealResponse()])


def reported() -> Said:
    exact = audit.AuditResponse(gaps=to_message(np.array([0.123456789])))
    report = game.SubmitAuditReportRequest(deal_id="deal-1", epsilon_spent=1.0)
    report.audits.add(request_id="metric-1", metric=1, exact=exact.gaps, released=exact.gaps)
    method = f"{REFEREE}SubmitAuditReport"
    return Said("compliance", "referee", method, [report], [game.SubmitAuditReportResponse()])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which compliance's cards reach everybody."""
    calls = [*(dealt(party) for party in ("compliance", "developer", "adversary")), guessed(), reported()]
    return record(tmp_path_factory.mktemp("runs") / "run", calls)


def viewed(folder: Path, party: str | None) -> Viewed:
    return Viewed(page(open_run(folder), sight=Sight(party)))


def found(told: Viewed) -> bool:
    """Whether A is in the page anywhere: as values, as bits, by its digest, or in base64."""
    if any(ByteSearch([COLUMN])(data) for data in told.everything):
        return True
    digest = blake3(A.tobytes()).digest()
    traces = [digest[:8], digest.hex()[:16].encode(), base64.b64encode(A.tobytes())[:40], A.tobytes().hex().encode()]
    return any(trace in data for trace in traces for data in told.everything)


@pytest.mark.parametrize("party", [None, "compliance", "referee"])
def test_who_may_learn_it_finds_the_protected_column_in_the_page(folder: Path, party: str | None) -> None:
    assert found(viewed(folder, party))


@pytest.mark.parametrize("party", ["developer", "adversary"])
def test_who_may_not_learn_it_does_not_even_where_it_was_sent_to_them(folder: Path, party: str) -> None:
    told = viewed(folder, party)
    assert not found(told)
    assert any(value == {"omitted": True} for _, details in told.messages() for _, _, value in details["fields"])
    for _, details in told.messages():
        for _, level, value in details["fields"]:
            assert value == {"omitted": True} or 0 < level <= CLEARANCE[party]


def filled(descriptor: Any, depth: int = 0) -> Any:
    """A message with every field set, one of each choice."""
    message = GetMessageClass(descriptor)()
    for place in descriptor.fields:
        if place.message_type is not None:
            if depth < 6:
                part, held = filled(place.message_type, depth + 1), getattr(message, place.name)
                held.append(part) if place.is_repeated else held.CopyFrom(part)
        elif place.is_repeated:
            getattr(message, place.name).append(_any(place))
        else:
            setattr(message, place.name, _any(place))
    return message


def _any(place: Any) -> Any:
    if place.enum_type is not None:
        return place.enum_type.values[-1].number
    return {place.CPPTYPE_STRING: b"x" if place.type == place.TYPE_BYTES else "x"}.get(place.cpp_type, 1)


def levels(message: Any, inherited: int = 0) -> Iterator[int]:
    for place, value in message.ListFields():
        level = label_of(place, inherited)
        yield level
        if place.message_type is not None:
            for part in value if place.is_repeated else (value,):
                yield from levels(part, level)


def test_of_any_message_of_the_protocol_only_what_the_party_may_learn_is_left() -> None:
    """To whomever a message was sent."""
    for party in CLEARANCE:
        for method in METHODS.values():
            for descriptor in (method.input_type, method.output_type):
                for place in descriptor.fields or ():
                    message = GetMessageClass(descriptor)()
                    message.MergeFrom(filled(descriptor))
                    # Of a choice only the last is set: each in turn.
                    if place.containing_oneof is not None and place.message_type is not None:
                        getattr(message, place.name).CopyFrom(filled(place.message_type))
                    before, left_out = set(levels(message)), Sight(party).clear(message)
                    assert all(0 < level <= CLEARANCE[party] for level in levels(message))
                    assert bool(left_out) == (max(before, default=0) > CLEARANCE[party])


def _no_clearing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sight, "clear", lambda *_: [])


def _all_transcripts(monkeypatch: pytest.MonkeyPatch) -> None:
    cleared = Sight.clear
    monkeypatch.setattr(Sight, "session", lambda *given: given[1])
    monkeypatch.setattr(Sight, "clear", lambda *given: cleared(Sight("referee"), given[1]))


@pytest.mark.parametrize("broken", [_no_clearing, _all_transcripts])
def test_the_search_finds_what_a_page_that_is_not_cleared_holds(
    monkeypatch: pytest.MonkeyPatch, folder: Path, broken: object
) -> None:
    assert callable(broken)
    broken(monkeypatch)
    assert found(viewed(folder, "developer"))


def test_nothing_is_derived_from_what_is_left_out(folder: Path) -> None:
    whole, own = viewed(folder, None), viewed(folder, "developer")
    said = {row["text"] for row, _ in own.messages()}
    assert any("disadvantaged" in row["text"] for row, _ in whole.messages())
    assert not any("disadvantaged" in text or "right for" in text for text in said)
    assert not any("0.1234" in data.decode(errors="ignore") for data in own.everything)
    for row, details in own.messages():
        assert set(row.get("guess", {})) <= {"of", "people", "names", "made", "before"}
        assert set(details["entries"]) == {"developer"}
        if any(value == {"omitted": True} for _, _, value in details["fields"]):
            assert "bytes" not in details
    assert (own.index["checked"], own.index["cells"], own.index["headline"]) == (None, None, None)
    assert not any({"value", "step", "cell", "finished"} & set(trial) for trial in own.trials)


def test_a_difference_names_no_value_to_who_may_not_learn_it(tmp_path: Path, folder: Path) -> None:
    other = A.copy()
    other[3] ^= 1
    calls = [dealt("developer")]
    for part in calls[0].answers:
        if part.protected_chunk:
            part.protected_chunk = other.tobytes()
    run = open_run(record(tmp_path / "a", [dealt("developer")]))
    beside = Other("b", open_run(record(tmp_path / "b", calls)).sessions)
    told = Viewed(page(run, sight=Sight("developer"), other=beside))
    assert told.index["beside"]["difference"]["text"].startswith("developer, entry ")
    assert not found(told)
    assert "recorded" not in told.index["beside"]["difference"]["text"]
    rows = [told.rows(trials[0]) for trials in (told.trials, told.index["beside"]["trials"])]
    assert rows[0] == rows[1], "a digest of it would tell it apart"


def test_a_party_without_a_transcript_is_refused(tmp_path: Path) -> None:
    folder = record(tmp_path / "run", [dealt("compliance")])
    (folder / "transcript" / "adversary" / "1.bin").unlink()
    with pytest.raises(ViewError, match="no transcript of adversary's"):
        page(open_run(folder), sight=Sight("adversary"))
