"""The other kinds of steps, and the list of all kinds. A step's keys are the fields of its class."""

from __future__ import annotations

import shutil
import time
from typing import Annotated, Any, Literal

import numpy as np
from google.protobuf import json_format
from numpy.typing import NDArray
from pydantic import Field

from fairwall import toml
from fairwall.developer.v1.model_service_pb2 import PredictHeader, PredictRequest
from fairwall.rpc import arrays
from fairwall.wire.metrics import number_of
from fairwall.wire.v1.metric_pb2 import Metric
from sim.conformance import calls, twins
from sim.conformance.audits import AuditStep, OpeningStep, SpentStep
from sim.conformance.by_group import ByGroupStep, GroupTermsStep
from sim.conformance.calls import ProtocolViolation
from sim.conformance.choices import (
    ChoiceStep,
    Follows,
    NeverExact,
    NoisyAttributes,
    NoisyCells,
    NoisySizes,
    NoisySums,
    Revealed,
    Silence,
    Verdicts,
)
from sim.conformance.client import Client, Clients
from sim.conformance.clock import Balance, Clock
from sim.conformance.deals import Deals
from sim.conformance.disk import Anew, Disk, KilledAmid, LedgerStep, Remembers, Synced
from sim.conformance.inputs import ConformanceError
from sim.conformance.open_calls import Connections, GiveUp, Hold, LetGo
from sim.conformance.releases import ReleaseStep, ReleaseTermsStep
from sim.conformance.repeated_calls import Alike, Altered, Race, Repeated, Twins
from sim.conformance.step_base import CallerStep, Expect, Header, Number, Part, Words, stream_of
from sim.conformance.survey import Survey
from sim.conformance.terms import TermsStep, WorthStep
from sim.conformance.twins import Timed, Written
from sim.conformance.unseen import AuditSealed, AuditTable
from sim.conformance.unseen_law import Widths
from sim.conformance.world import CaseState, NotRun

PREDICT = "/fairwall.developer.v1.ModelService/Predict"


class Predict(CallerStep):
    """A step that requests scores from a model of the developer's, which must be the model's own.

    `request` is "$request" for the one under way, and empty for the released model; `number` is the model's index.
    `put` changes random features, each a (row, column, value), which are sent in the type `kind`. All else is as in
    `AuditStep`.
    """

    do: Literal["predict"]
    caller: str = "adversary"
    deal: str | None = None
    request: str = ""
    number: Number = 0
    rows: Number = 3
    columns: Number = "features"
    put: tuple[tuple[int, int, float], ...] = ()
    kind: Literal["float64", "float32", "uint8"] = "float64"
    header: Header = Header()
    parts: tuple[Part, ...] = ("header", "chunks")
    chunk_bytes: int = Field(default=1 << 20, ge=1)
    expect: Expect = Expect()

    def run(self, world: CaseState) -> None:
        """Request scores, and check them."""
        about = world.about(self.deployment)
        rows, columns, number = (int(world.number(each)) for each in (self.rows, self.columns, self.number))
        features = np.random.default_rng(1).normal(size=(rows, columns))
        for row, column, value in self.put:
            features[row, column] = value
        features = (np.abs(features) if self.kind == "uint8" else features).astype(self.kind)
        header = PredictRequest(
            header=PredictHeader(
                deal_id=about.deal if self.deal is None else self.deal,
                features=self.header.of(features, world, self.deployment),
                request_id=about.request if self.request == "$request" else self.request,
                model=number,
            )
        ).SerializeToString()
        data = arrays.to_message(features).data
        stream = stream_of(self.parts, header, data, self.chunk_bytes, lambda part: PredictRequest(features_chunk=part))
        seen = world.call(PREDICT, list(stream), self.caller, deployment=self.deployment, **self.sent_with())
        self.expect.check_end(seen)
        if seen.answered:
            _require_scores(
                seen.messages[0].scores, features.astype(np.float64), np.array(about.weights) * (number + 1)
            )


def _require_scores(message: Any, features: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
    scores = calls.numbers(message, "scores", len(features), "row")
    with np.errstate(over="ignore"):
        expected = 1 / (1 + np.exp(-(features @ weights)))
    if not np.allclose(scores, expected, rtol=0, atol=1e-12):
        raise ProtocolViolation("scores are not the model's")


class CallStep(CallerStep):
    """A step that calls any method, "/package.Service/Method", even one that the protocol does not have.

    A request is in protobuf's JSON form. "$deal" stands for the target's deal, likewise for its other facts, "$id" for
    a new request id, "$long" for a text of more than 4 MiB. Bytes are base64; an array is `{fill = 1.0, shape = [3],
    kind = "uint8"}`. `messages` are several requests, to a method with or without a stream; `raw` has bytes in
    hexadecimal instead. `answer` has the fields that an answer must have.
    """

    do: Literal["call"]
    name: str = ""
    method: str
    request: dict[str, Any] = Field(default_factory=dict)
    messages: tuple[dict[str, Any], ...] | None = None
    raw: tuple[str, ...] | None = None
    times: int = Field(default=1, ge=1)
    answer: dict[str, Any] = Field(default_factory=dict)
    expect: Expect = Expect()

    def run(self, world: CaseState) -> None:
        """Make the calls, and check their ends."""
        for _ in range(self.times):
            self._run_once(world)

    def _run_once(self, world: CaseState) -> None:
        requests = self._requests(world)
        seen = world.call(self.method, requests, self.caller, deployment=self.deployment, **self.sent_with())
        self.expect.check_end(seen)
        for message in seen.messages[:1]:
            told = json_format.MessageToDict(
                message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
            )
            for key, value in self.answer.items():
                if told.get(key) != (expected := _resolved(value, world, self.deployment)):
                    raise ProtocolViolation(f"{key} is {told.get(key)!r}; it should be {expected!r}")
        self.expect.check_told(seen, world, self.name)

    def _requests(self, world: CaseState) -> list[bytes]:
        if self.raw is not None:
            return [bytes.fromhex(each) for each in self.raw]
        try:
            request, _, _, _ = calls.method_types(self.method)
        except KeyError:
            return [b""]
        wanted = (self.request,) if self.messages is None else self.messages
        resolved = (_resolved(each, world, self.deployment) for each in wanted)
        return [json_format.ParseDict(each, request()).SerializeToString() for each in resolved]


def _resolved(value: Any, world: CaseState, deployment: str) -> Any:
    """Return a case's value with facts of the target filled in."""
    if isinstance(value, dict) and "fill" in value:
        shape = tuple(int(world.number(each, deployment=deployment)) for each in value["shape"])
        filled = np.full(shape, value["fill"]).astype(value.get("kind", "float64"))
        return json_format.MessageToDict(arrays.to_message(filled))
    if isinstance(value, dict):
        return {key: _resolved(each, world, deployment) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_resolved(each, world, deployment) for each in value]
    if isinstance(value, str) and value.startswith("$"):
        name = value[1:]
        if name == "id":
            return world.request_id("a")
        if name == "long":
            return "x" * ((4 << 20) + 1)
        about: Any = world.about(deployment)
        if name == "metrics":
            return [Metric.Name(number_of(metric)) for metric in about.metrics]
        if name == "share":
            share = about.shares.get(world.subject.target.developer("developer"))
            if share is None:
                raise NotRun("needs the developer's share")
            return share
        # 64-bit numbers are strings in protobuf's JSON.
        found = getattr(about, name)
        return str(found) if isinstance(found, int) else found
    return value


class Until(Words):
    """A step that repeats a call until it ends as expected, because servers notice other calls' ends with a delay."""

    do: Literal["until"]
    call: CallStep
    seconds: float = 5.0

    def run(self, world: CaseState) -> None:
        """Repeat the call."""
        give_up = time.monotonic() + self.seconds
        steady = 0
        while True:
            try:
                self.call.run(world)
            except ProtocolViolation:
                if time.monotonic() > give_up:
                    raise
                steady = 0
            else:
                steady = 0 if any(each.call.done() for each in world.held) else steady + 1
                if not world.held or steady == _STEADY or time.monotonic() > give_up:
                    return
            time.sleep(0.02)
            # This call may have taken the place of one to be held, which was refused then.
            world.held[:] = [each.again() if each.call.done() else each for each in world.held]


_STEADY = 5
"""Successive calls that must end as expected while all held calls are open: the refusal of a reopened call may still be
on its way when the next call has ended."""


class Revoke(Words):
    """A step that replaces the server's list of revoked certificates by one of the kit's, or removes it."""

    do: Literal["revoke"]
    list: str = ""

    def run(self, world: CaseState) -> None:
        """Replace the list, at once."""
        if not world.subject.starts:
            raise NotRun("needs a server that the tester starts")
        place = world.subject.shown(world.deployment) / "revoked.pem"
        if not self.list:
            place.unlink()
            return
        fresh = place.with_suffix(".new")
        shutil.copyfile(world.subject.target.certificates / "revoked" / f"{self.list}.pem", fresh)
        fresh.replace(place)


class PolicyStep(Words):
    """A step that ends the server and changes its policy, each key a path such as "data.minimum_group".

    A later step starts the server. The next case finds it with its former policy, as if it had never run.
    """

    do: Literal["policy"]
    set: dict[str, Any]

    def run(self, world: CaseState) -> None:
        """Write the policy."""
        if not world.subject.starts:
            raise NotRun("needs a server that the tester starts")
        world.forget_connections()
        policy = toml.read(world.subject.policy(world.deployment))
        for name, value in self.set.items():
            *sections, key = name.split(".")
            section = policy
            for each in sections:
                section = section.setdefault(each, {})
            section[key] = value
        world.subject.change(world.deployment, policy)
        world.changed.add(world.deployment)


class Restart(Words):
    """A step that restarts the server: by SIGKILL, by SIGTERM ("end"), or as if it had never run ("anew")."""

    do: Literal["restart"]
    deployment: str = ""
    how: Literal["kill", "end", "anew"] = "kill"

    def run(self, world: CaseState) -> None:
        """Restart the server."""
        if not world.subject.can_restart or (self.how == "anew" and not world.subject.starts):
            raise NotRun("needs a command that starts the server again")
        name = self.deployment or world.deployment
        world.subject.address(name)
        world.forget_connections()
        if self.how == "anew":
            world.subject.renew(name)
            world.forget_purchases(name)
        else:
            world.subject.restart(name, gently=self.how == "end")


class NoStart(Words):
    """A step that demands that the server does not start."""

    do: Literal["no_start"]

    def run(self, world: CaseState) -> None:
        """Try to start the server."""
        if not world.subject.starts:
            raise NotRun("needs a server that the tester starts")
        try:
            world.subject.address(world.deployment)
        except ConformanceError:
            return
        raise ProtocolViolation("it is served")


class Pause(Words):
    """A step that waits, to give the server time for a forbidden act."""

    do: Literal["pause"]
    seconds: float = Field(gt=0, le=10)

    def run(self, world: CaseState) -> None:  # noqa: ARG002
        """Wait."""
        time.sleep(self.seconds)


class Later(Words):
    """A step that continues after `seconds`; other cases are run meanwhile."""

    do: Literal["later"]
    seconds: float = Field(gt=0, le=120)

    def run(self, world: CaseState) -> None:
        """Do nothing: the runner of cases waits."""


class SilentLog(Words):
    """A step that demands that the log has neither the exact gaps of earlier requests nor anybody's group."""

    do: Literal["silent_log"]

    def run(self, world: CaseState) -> None:
        """Search the log."""
        if not world.subject.starts:
            raise NotRun("needs a server that the tester starts, to read its log")
        said = world.subject.log(world.deployment).encode()
        if told := twins.told_by(said, world.people().protected, world.exact):
            raise ProtocolViolation(f"the log tells {told}")


ONCE = frozenset(
    {
        *("restart", "anew", "disk", "ledger", "remembers", "clock", "balance", "pause", "later", "no_start"),
        *(
            "connections",
            "silent_log",
            "let_go",
            "until",
            "revoke",
            "policy",
            "killed_amid",
            "synced",
            "written",
            "opened",
        ),
    }
)
"""Kinds of steps that are done once, not on each service of a case."""

Step = Annotated[
    AuditStep
    | AuditSealed
    | AuditTable
    | Repeated
    | Alike
    | Survey
    | WorthStep
    | Altered
    | Race
    | Twins
    | TermsStep
    | Verdicts
    | ChoiceStep
    | NoisyAttributes
    | NoisyCells
    | NoisySizes
    | NoisySums
    | Widths
    | OpeningStep
    | Silence
    | NeverExact
    | Follows
    | Revealed
    | SpentStep
    | ReleaseStep
    | ReleaseTermsStep
    | ByGroupStep
    | GroupTermsStep
    | Predict
    | CallStep
    | Hold
    | LetGo
    | Until
    | Client
    | Clients
    | Revoke
    | PolicyStep
    | Restart
    | Anew
    | Disk
    | LedgerStep
    | Remembers
    | KilledAmid
    | Written
    | Timed
    | Synced
    | Deals
    | GiveUp
    | Clock
    | Balance
    | Connections
    | Later
    | NoStart
    | Pause
    | SilentLog,
    Field(discriminator="do"),
]
