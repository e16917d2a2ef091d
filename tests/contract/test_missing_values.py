"""Whether a protected value is missing: with the noise's outputs fixed, whoever asks sees the same in both worlds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.answers import audits as case
from compliance.answers import groups
from compliance.answers.audit_service import AuditService
from compliance.answers.charging import DEVELOPER
from compliance.answers.group_service import GroupService
from compliance.deployment.accounts import opened
from compliance.deployment.ledger import agree
from compliance.deployment.policy import loading
from compliance.deployment.policy.reading import read
from compliance.deployment.policy.schema import PolicyError
from compliance.ledger import Ledger
from compliance.noise.sampling import noise_for
from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.compliance.v1.audit_service_pb2_grpc import AuditServiceStub, add_AuditServiceServicer_to_server
from fairwall.compliance.v1.group_service_pb2_grpc import GroupServiceStub, add_GroupServiceServicer_to_server
from fairwall.rpc import channel, server
from fairwall.rpc.arrays import header_of
from fairwall.rpc.errors import audit_error_of
from fairwall.wire.metrics import number_of

PEOPLE, WHO = 60, 7
"""How many people there are, and whose value is missing in one world. Groups and strata are of unequal sizes."""

POLICY = """
[deployment]
name = "run-1"
listen = "127.0.0.1:0"
credentials = "."
ledger = "ledger/ledger.sqlite"
seal = "seal/head"
[data]
source = "people.csv"
protected = "group"
advantaged = "a"
label = "repaid"
positive = "1"
minimum_group = 2
{data}
[data.groups]
group = ["a", "b", "unknown"]
race = ["x", "y", "unknown"]
[audit]
metrics = ["sp", "eo", "fpr"]
mechanism = "{mechanism}"
queries_max = 3
[budget]
epsilon = 1000
[developers]
developer.epsilon = 900
"""

SAID = ("", 'impute = { group = "b" }', 'impute = { group = "b" }\nmissing = "drop"', 'missing = "drop"')
MECHANISMS = (
    "cube",
    *(pytest.param(name, marks=pytest.mark.check) for name in ("recommended", "cells", "low-rank", "counts")),
)


class Fixed:
    """Noise that puts out the same whatever it is added to."""

    def __init__(self, _: bytes | None, request_id: str) -> None:
        self._drawn = noise_for(b"fixed", request_id)

    def laplace(self, values: NDArray[np.float64], scale: float, step: float) -> NDArray[np.float64]:
        return self._drawn.laplace(np.zeros_like(values) if scale else values, scale, step)

    def cube(self, values: NDArray[np.float64], scale: float, step: float) -> NDArray[np.float64]:
        return self._drawn.cube(np.zeros_like(values), scale, step)

    def bernoulli_exp(self, exponents: NDArray[np.float64]) -> NDArray[np.bool_]:
        return self._drawn.bernoulli_exp(exponents)


def drowned(_: Any, __: float, rows: int, columns: int) -> NDArray[np.int64]:
    """Noise so large that float64 has no room for what it is added to."""
    return np.full((rows, columns), 1 << 61)


def people(folder: Path, group: str, race: str) -> None:
    """Write a file whose one person has these values, or none."""
    rows = [f"{'aab'[i % 3]},{'xyy'[i // 3 % 3]},{int(i % 4 > 0)}" for i in range(PEOPLE)]
    rows[WHO] = f"{group},{race},{rows[WHO][-1]}"
    (folder / "people.csv").write_text("\n".join(["group,race,repaid", *rows, ""]))


def questions() -> Iterator[NDArray[np.float64]]:
    """Predictions about the one alone, about others alone, and about all."""
    for who in (WHO, WHO + 1):
        alone = (np.arange(PEOPLE) == who).astype(float)[np.newaxis]
        yield alone
        yield 1 - alone
    yield np.stack([np.arange(PEOPLE) % 2, np.arange(PEOPLE) == WHO, np.arange(PEOPLE) > 20]).astype(float)


@contextmanager
def served(folder: Path, credentials: Any) -> Iterator[grpc.Channel]:
    """Serve a folder's policy as a deployment does, to a run's developer."""
    policies = read(folder / "policy.toml")
    data = loading.load_all(policies)
    ledger = Ledger()
    agree(policies, data, ledger)
    accounts = opened(data, ledger)

    def register(started: grpc.Server) -> None:
        add_AuditServiceServicer_to_server(AuditService(accounts.audits), started)
        add_GroupServiceServicer_to_server(GroupService(accounts.groups), started)

    listening = server.serve(register, credentials["compliance"])
    try:
        with channel.connect(listening.address, "compliance", credentials["developer"]) as dialled:
            yield dialled
    finally:
        listening.stop()


def seen(folder: Path, credentials: Any) -> list[bytes]:
    """All that a developer hears: of terms, worth, audits at falling epsilons, their repeats, and counts by group."""
    with served(folder, credentials) as dialled:
        audits, by_group = AuditServiceStub(dialled), GroupServiceStub(dialled)
        heard: list[bytes] = []

        def hear(call: Any, *requests: Any, stream: bool = True) -> None:
            try:
                heard.append(call(iter(requests) if stream else requests[0], timeout=300).SerializeToString())
            except grpc.RpcError as error:
                heard.append(audit_error_of(error).SerializeToString())

        hear(audits.GetTerms, audit.GetTermsRequest(deal_id="run-1"), stream=False)
        hear(by_group.GetGroupTerms, wire.GetGroupTermsRequest(deal_id="run-1"), stream=False)
        asked = [(metric, epsilon) for metric in ("sp", "eo") for epsilon in (0.5, 0.01)]
        for place, predictions in enumerate(questions()):
            for metric, epsilon in [*asked, asked[0]]:
                fields = {"deal_id": "run-1", "epsilon": epsilon, "predictions": header_of(predictions)}
                name = f"{place} {metric} {epsilon}"
                header = audit.AuditHeader(request_id=name, metric=number_of(metric), **fields)
                chunk = predictions.tobytes()
                hear(audits.Audit, audit.AuditRequest(header=header), audit.AuditRequest(predictions_chunk=chunk))
            of_groups = wire.ByGroupHeader(
                request_id=f"{place} by group", by=["race", "group"], measures=[1, 2, 3], **fields
            )
            hear(by_group.ByGroup, wire.ByGroupRequest(header=of_groups), wire.ByGroupRequest(predictions_chunk=chunk))
    assert all(heard)
    return heard


def differ(folder: Path, credentials: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a developer sees a difference between the worlds."""
    monkeypatch.setattr(case, "noise_for", Fixed)
    monkeypatch.setattr(groups, "noise_for", Fixed)
    monkeypatch.setattr(groups, "balanced_noise", drowned)
    worlds = []
    for values in (("a", "x"), ("", "x"), ("a", "")):
        people(folder, *values)
        worlds.append(seen(folder, credentials))
    return not worlds[0] == worlds[1] == worlds[2]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_missing_value_changes_nothing_but_what_has_noise(
    tmp_path: Path, credentials: Any, mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[bool | None] = []
    for data in SAID:
        (tmp_path / "policy.toml").write_text(POLICY.format(data=data, mechanism=mechanism))
        outcome = None
        with suppress(PolicyError):
            outcome = differ(tmp_path, credentials, monkeypatch)
        outcomes.append(outcome)
    assert outcomes == [None, False, False, None]


def test_a_service_that_leaves_such_people_out_is_caught(
    tmp_path: Path, credentials: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left_out(data: Any, name: str, table: Any) -> NDArray[np.bool_]:
        return ~loading.missing(name, table, data.protected)

    monkeypatch.setattr(loading, "_audited", left_out)
    (tmp_path / "policy.toml").write_text(POLICY.format(data=SAID[3], mechanism="cube"))
    assert differ(tmp_path, credentials, monkeypatch)


def test_the_game_developers_name_is_the_policys() -> None:
    assert f"\n{DEVELOPER}.epsilon" in POLICY
