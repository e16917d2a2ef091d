"""The kinds of steps that buy sanitised attributes. A step's keys are the fields of its class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fairwall.compliance.v1.release_service_pb2 import SanitiseRequest
from fairwall.rpc import arrays
from sim.conformance import local_law
from sim.conformance.calls import CallResult, ProtocolViolation
from sim.conformance.purchases import PurchaseStep, SentRequest
from sim.conformance.step_base import Expect, Words
from sim.conformance.target import Releases
from sim.conformance.world import Account, CaseState, NotRun, Result

SANITISE = "/fairwall.compliance.v1.ReleaseService/Sanitise"


class ReleaseTermsStep(Words):
    """A step that requests the terms of releases, which must be those in the target's description."""

    do: Literal["release_terms"]
    name: str = ""
    caller: str = "developer"
    deployment: str = ""
    expect: Expect = Expect()

    def run(self, world: CaseState) -> None:
        """Request the terms, and compare them."""
        described = _described(world, self.deployment)
        seen = world.terms(self.caller, self.deployment, "releases")
        self.expect.check_end(seen)
        if not seen.answered:
            return
        told = seen.messages[0]
        columns = [(one.name, tuple(one.values), one.domain) for one in told.columns]
        if (told.people, told.protocol) != (described.people, described.protocol):
            raise ProtocolViolation(
                f"the terms say {told.people} people and {told.protocol}; the policy says otherwise"
            )
        if columns != [(one.name, one.values, len(one.values)) for one in described.columns]:
            raise ProtocolViolation(f"the terms' columns are {columns}; the policy has others")
        if not np.allclose([one.share for one in told.columns], [one.share for one in described.columns], rtol=1e-12):
            raise ProtocolViolation("the terms' shares of epsilon are not the policy's")
        share = described.shares.get(world.subject.target.developer(self.caller))
        if share is not None and told.epsilon != share:
            raise ProtocolViolation(f"the terms say that the budget is {told.epsilon!r}; it is {share!r}")
        self.expect.check_told(seen, world, self.name)


class ReleaseStep(PurchaseStep):
    """A step that buys a release, whose noise, if tested, must have its protocol's distribution."""

    METHOD: ClassVar[str] = SANITISE
    ACCOUNT: ClassVar[Account] = "releases"

    do: Literal["release"] = "release"

    def asked(self, world: CaseState) -> SentRequest:
        """Return the request."""
        _described(world, self.deployment)
        deal = world.about(self.deployment).deal if self.deal is None else self.deal
        header = SanitiseRequest(request_id=self.named(world), deal_id=deal, epsilon=self.spends(world))
        return SentRequest(header, np.empty((0, 0)))

    def messages(self, request: SentRequest) -> Iterator[bytes]:
        """Yield the one message of a request."""
        yield request.header.SerializeToString()

    def told(self, seen: CallResult) -> Any:
        """Return the part of an answer that has its cost."""
        return seen.messages[0].header

    def check_answer(self, world: CaseState, request: SentRequest, seen: CallResult) -> Result:
        """Check an answer, enter its cost, and return its noise."""
        described, epsilon = _described(world, self.deployment), request.header.epsilon
        columns, header = _columns(seen, described), seen.messages[0].header
        expected = [epsilon * column.share for column in described.columns]
        if len(header.epsilons) != len(expected) or not np.allclose(header.epsilons, expected, rtol=1e-12, atol=0):
            raise ProtocolViolation(f"the columns' epsilons are {list(header.epsilons)}; they should be {expected}")
        place = (self.caller, self.deployment or world.deployment, request.header.request_id)
        bits = b"".join(column.tobytes() for column in columns)
        if world.released.setdefault(place, bits) != bits:
            raise ProtocolViolation("the same request got other bits")
        world.enter(self.caller, self.deployment, request.header.request_id, epsilon, header, self.ACCOUNT)
        values = world.subject.target.released(self.deployment or world.deployment)
        if not (self.expect.noise or self.expect.unlike or self.name):
            return Result(seen)
        if values is None or described.protocol not in local_law.PROTOCOLS:
            raise NotRun("needs the table of those whose attributes are released, and a law that the tester knows")
        parts = local_law.uniform(columns, values, expected, described.protocol)
        if self.expect.noise:
            local_law.require_law(parts)
        return Result(seen, np.empty(0), np.empty(0), np.concatenate([part.own for part in parts]), discrete=True)


def _columns(seen: CallResult, described: Releases) -> Sequence[NDArray[Any]]:
    ends = np.cumsum([len(column.values) for column in described.columns])
    return np.split(_encoded(seen, described), ends[:-1], axis=1)


def _encoded(seen: CallResult, described: Releases) -> NDArray[Any]:
    """Return an answer's chunks as one array of the required type and shape."""
    first, *rest = seen.messages or (None,)
    if first is None or first.WhichOneof("part") != "header":
        raise ProtocolViolation("a release does not begin with its header")
    if any(part.WhichOneof("part") != "encoded_chunk" for part in rest):
        raise ProtocolViolation("a release has something else than chunks after its header")
    try:
        encoded = arrays.gathered(first.header.encoded, (part.encoded_chunk for part in rest))
    except arrays.ArrayError as error:
        raise ProtocolViolation(f"encodings: {error}") from None
    kind = np.float64 if described.protocol == local_law.NUMBERS else np.uint8
    shape = (described.people, sum(len(column.values) for column in described.columns))
    if encoded.dtype != kind or encoded.shape != shape:
        raise ProtocolViolation(
            f"encodings must be {kind.__name__} of shape {shape}, not {encoded.dtype} of {encoded.shape}"
        )
    if described.protocol != local_law.NUMBERS and not np.isin(encoded, (0, 1)).all():
        raise ProtocolViolation("encodings must be zeros and ones")
    return encoded


def _described(world: CaseState, deployment: str) -> Releases:
    described = world.about(deployment).releases
    if described is None:
        raise NotRun("needs a deployment that releases attributes")
    return described
