"""The kinds of steps that buy sanitised attributes. A step's keys are the fields of its class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import grpc
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairwall.compliance.v1.release_service_pb2 import GetReleaseTermsRequest, SanitiseRequest
from fairwall.rpc import arrays
from sim.conformance import calls, local_law
from sim.conformance.calls import Seen, Violation
from sim.conformance.target import Releases
from sim.conformance.vocabulary import Asks, Expect, ExpectLaw, Words
from sim.conformance.world import NotRun, Result, World

SANITISE = "/fairwall.compliance.v1.ReleaseService/Sanitise"

RELEASE_TERMS = "/fairwall.compliance.v1.ReleaseService/GetReleaseTerms"

_NUMBERS = "the-server"
"""The protocol that releases numbers; all others release zeros and ones."""


class ReleaseTerms(Words):
    """Asks for the terms of releases, which must be those that the target describes."""

    do: Literal["release_terms"]
    name: str = ""
    caller: str = "developer"
    deployment: str = ""
    expect: Expect = Expect()

    def run(self, world: World) -> None:
        """Ask, and compare."""
        described = _described(world, self.deployment)
        seen = _terms(world, self.caller, self.deployment)
        self.expect.check_end(seen)
        if not seen.answered:
            return
        told = seen.messages[0]
        columns = [(one.name, tuple(one.values), one.domain) for one in told.columns]
        if (told.people, told.protocol) != (described.people, described.protocol):
            raise Violation(f"the terms say {told.people} people and {told.protocol}; the policy says otherwise")
        if columns != [(one.name, one.values, len(one.values)) for one in described.columns]:
            raise Violation(f"the terms' columns are {columns}; the policy has others")
        if not np.allclose([one.share for one in told.columns], [one.share for one in described.columns], rtol=1e-12):
            raise Violation("the terms' shares of epsilon are not the policy's")
        share = described.shares.get(world.subject.target.developer(self.caller))
        if share is not None and told.epsilon != share:
            raise Violation(f"the terms say that the budget is {told.epsilon!r}; it is {share!r}")
        self.expect.check_told(seen, world, self.name)


class Release(Asks):
    """Buys a release, which later steps call `name`.

    `id` stands for a request id that no other case uses; `request_id` is one word for word. With `together` so many
    such calls are made at the same time, which must all get one answer; where they are `apart` each has an id of its
    own, and `answered` of them are answered. `unlike` names a step of the same
    deployment whose draw it must not repeat.
    """

    do: Literal["release"]
    name: str = ""
    id: str = "a"
    request_id: str | None = None
    deal: str | None = None
    epsilon: float = 1.0
    another_connection: bool = False
    together: int = Field(default=1, ge=1)
    apart: bool = False
    answered: int | None = None
    expect: ExpectLaw = ExpectLaw()

    def run(self, world: World) -> None:
        """Buy, and look at what comes, and at what it has cost."""
        described = _described(world, self.deployment)
        before = _left(world, self.caller, self.deployment)
        ids = [f"{self.id}-{number}" if self.apart else self.id for number in range(self.together)]
        asked = [world.request_id(each) if self.request_id is None else self.request_id for each in ids]
        channel = world.channel(self.caller, self.deployment, another=self.another_connection)
        started = [calls.start(channel, SANITISE, [self._request(world, each)], **self.sent_with()) for each in asked]
        ends = [calls.finish(SANITISE, each) for each in started]
        first = 0
        for request_id, seen in zip(asked, ends, strict=True):
            if self.answered is None or not seen.answered:
                self.expect.check_end(seen)
            if seen.answered:
                first += self._enter(world, described, request_id, seen)
            else:
                _require_numbers(seen, before)
        if self.answered is not None and self.answered != (found := sum(seen.answered for seen in ends)):
            raise Violation(f"{found} of {self.together} calls at the same time were answered")
        left, expected = _left(world, self.caller, self.deployment), before - first * self.epsilon
        if not _is(left, expected):
            raise Violation(f"{self.caller} has epsilon {left!r} left for releases; it should be {expected!r}")
        if self.together == 1 and ends[0].answered:
            told = ends[0].messages[0].header.epsilon_remaining
            if first and not _is(told, expected):
                raise Violation(f"a release says that {told!r} is left; it should be {expected!r}")
            self._compare(world, described, ends[0])

    def _request(self, world: World, request_id: str) -> bytes:
        deal = world.about(self.deployment).deal if self.deal is None else self.deal
        return SanitiseRequest(request_id=request_id, deal_id=deal, epsilon=self.epsilon).SerializeToString()

    def _enter(self, world: World, described: Releases, request_id: str, seen: Seen) -> bool:
        """Check an answer's form, and that it is the one that was given before; say whether it is the first."""
        header, encoded = seen.messages[0].header, _encoded(seen, described)
        if header.epsilon_charged != self.epsilon:
            raise Violation(f"a release at epsilon {self.epsilon:g} was charged {header.epsilon_charged:g}")
        expected = [self.epsilon * column.share for column in described.columns]
        if len(header.epsilons) != len(expected) or not np.allclose(header.epsilons, expected, rtol=1e-12, atol=0):
            raise Violation(f"the columns' epsilons are {list(header.epsilons)}; they should be {expected}")
        place = (self.caller, self.deployment or world.deployment, request_id)
        is_first = place not in world.released
        before, bits = world.released.setdefault(place, (header, encoded.tobytes()))
        if bits != encoded.tobytes():
            raise Violation("the same request got other bits")
        if before != header:
            raise Violation("the same request got another header")
        return is_first

    def _compare(self, world: World, described: Releases, seen: Seen) -> None:
        if self.name:
            world.results[self.name] = Result(seen)
        if not (self.expect.law or self.expect.unlike):
            return
        values = world.subject.target.released(self.deployment or world.deployment)
        if values is None:
            raise NotRun("needs the table of those whose attributes are released")
        if described.protocol not in local_law.PLACES:
            raise NotRun("needs a protocol whose law the tester knows")
        columns, epsilons = _columns(seen, described)
        if self.expect.law:
            local_law.require_law(columns, values, epsilons, described.protocol)
        if self.expect.unlike:
            others, spent = _columns(world.results[self.expect.unlike].seen, described)
            if all(map(np.array_equal, columns, others)):
                raise Violation("two requests got the same bits")
            both = list(zip(epsilons, spent, strict=True))
            local_law.require_unrelated(columns, others, values, both, described.protocol)


def _columns(seen: Seen, described: Releases) -> tuple[Sequence[NDArray[Any]], list[float]]:
    """Cut a release into columns; what was spent on each."""
    ends = np.cumsum([len(column.values) for column in described.columns])
    return np.split(_encoded(seen, described), ends[:-1], axis=1), list(seen.messages[0].header.epsilons)


def _encoded(seen: Seen, described: Releases) -> NDArray[Any]:
    """Put an answer's chunks together, and look at their type and shape."""
    first, *rest = seen.messages or (None,)
    if first is None or first.WhichOneof("part") != "header":
        raise Violation("a release does not begin with its header")
    if any(part.WhichOneof("part") != "encoded_chunk" for part in rest):
        raise Violation("a release has something else than chunks after its header")
    try:
        encoded = arrays.gathered(first.header.encoded, (part.encoded_chunk for part in rest))
    except arrays.ArrayError as error:
        raise Violation(f"encodings: {error}") from None
    kind = np.float64 if described.protocol == _NUMBERS else np.uint8
    shape = (described.people, sum(len(column.values) for column in described.columns))
    if encoded.dtype != kind or encoded.shape != shape:
        raise Violation(f"encodings must be {kind.__name__} of shape {shape}, not {encoded.dtype} of {encoded.shape}")
    if described.protocol != _NUMBERS and not np.isin(encoded, (0, 1)).all():
        raise Violation("encodings must be zeros and ones")
    return encoded


def _described(world: World, deployment: str) -> Releases:
    """Find what the target says of releases."""
    described = world.about(deployment).releases
    if described is None:
        raise NotRun("needs a deployment that releases attributes")
    return described


def _terms(world: World, caller: str, deployment: str) -> Seen:
    request = GetReleaseTermsRequest(deal_id=world.about(deployment).deal)
    seen = world.call(RELEASE_TERMS, [request.SerializeToString()], caller, deployment=deployment)
    if seen.status is grpc.StatusCode.UNIMPLEMENTED:
        raise NotRun("needs a server that releases attributes")
    return seen


def _left(world: World, caller: str, deployment: str) -> float:
    """Ask what a caller has left; NaN for one who may not ask."""
    terms = _terms(world, caller, deployment)
    return float(terms.messages[0].epsilon_remaining) if terms.answered else math.nan


def _require_numbers(seen: Seen, left: float) -> None:
    told = dict(seen.numbers)
    if "epsilon_remaining" in told and told["epsilon_needed"] <= told["epsilon_remaining"]:
        raise Violation(f"{seen.reason} says that {told['epsilon_needed']!r} is needed, and enough is left")
    if "epsilon_remaining" in told and told["epsilon_remaining"] > left:
        raise Violation(f"{seen.reason} says that {told['epsilon_remaining']!r} is left; it is at most {left!r}")


def _is(found: float, expected: float) -> bool:
    return math.isnan(expected) or abs(found - expected) <= 1e-9 * max(1.0, abs(expected))
