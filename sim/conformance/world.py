"""What one case has to do with: the server, callers' connections, the answers so far, and what they should cost."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any, Literal, TypeAlias

import grpc
import numpy as np
from numpy.typing import NDArray

from fairwall.compliance.v1.audit_service_pb2 import GetTermsRequest
from fairwall.compliance.v1.release_service_pb2 import GetReleaseTermsRequest
from fairwall.laws.mechanisms import MECHANISM_LAWS
from fairwall.rpc.identity import Credentials
from sim.conformance import calls
from sim.conformance.calls import Metadata, Seen, Violation
from sim.conformance.certificates import Authority
from sim.conformance.errors import ConformanceError
from sim.conformance.subject import Subject
from sim.conformance.target import Deployment, People

SECONDS = 20.0
"""The deadline of a call that should succeed."""

Service: TypeAlias = Literal["audit", "by_group", "sanitise", "sealed", "table"]
"""What sells something; the last two are audits of models that are handed over, and of tables."""

PLACES: dict[Service, str] = {"sealed": "sealed", "table": "tables"}
"""The deployment of those that have one of their own, whichever deployment a case is about."""

Account: TypeAlias = Literal["audits", "releases"]
"""What pays: for counts by group that of audits."""

TERMS: dict[Account, tuple[str, Any]] = {
    "audits": ("/fairwall.compliance.v1.AuditService/GetTerms", GetTermsRequest),
    "releases": ("/fairwall.compliance.v1.ReleaseService/GetReleaseTerms", GetReleaseTermsRequest),
}
"""Who tells what is left of it, and the request."""

SELLS = {
    "GroupService/": "counts by group",
    "ReleaseService/": "releases attributes",
    "/AuditSealed": "scores models",
    "/AuditTable": "adds up tables",
}
"""What not every server does, by the service."""

_OFFERS = {"by_group": "/fairwall.compliance.v1.GroupService/GetGroupTerms", "sanitise": TERMS["releases"][0]}

_Place: TypeAlias = tuple[str, str, Account]
"""Whose account: the caller's, of a deployment."""

_OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_SUM = re.compile(r"([a-z_]+)(?:\s*([-+*/])\s*([0-9.e-]+))?")


class NotRun(Exception):
    """A case that this target cannot be put to; the text says what is missing."""


class Over(Exception):
    """A case that is decided before its last step: it is passed."""


@dataclass(frozen=True, eq=False)
class Result:
    """What came of a step that others may refer to."""

    seen: Seen
    noise: NDArray[np.float64] | None = None
    exact: NDArray[np.float64] | None = None
    uniform: NDArray[np.float64] | None = None
    """What the answers are made of, where the law of their noise is known: see `sim.conformance.promise`."""
    discrete: bool = False
    """Whether noise is whole numbers, of which two may be the same by chance."""


@dataclass
class World:
    """The state of one case, about a deployment that the party `server` serves.

    The nonce makes this run's request ids unlike any other run's. With `accounts` it is watched what callers have left.
    A step is put to the `service`, and names what it got by itself; or to all `services` of the case at once.
    """

    subject: Subject
    server: str
    deployment: str
    nonce: str
    accounts: bool = True
    service: Service = "audit"
    services: tuple[Service, ...] = ("audit",)
    step: int = 0
    _results: dict[Service, dict[str, Result]] = field(default_factory=dict)
    held: list[Any] = field(default_factory=list)
    released: dict[tuple[str, str, str], bytes] = field(default_factory=dict, repr=False)
    exact: list[float] = field(default_factory=list, repr=False)
    kept: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    _surveyed: dict[Service, list[Any]] = field(default_factory=dict, repr=False)
    changed: set[str] = field(default_factory=set)
    closing: ExitStack = field(default_factory=ExitStack)
    _channels: dict[tuple[str, str], grpc.Channel] = field(default_factory=dict)
    _left: dict[_Place, float] = field(default_factory=dict)
    _exactly: dict[_Place, Fraction] = field(default_factory=dict)
    _open: dict[_Place, dict[str, float]] = field(default_factory=dict)
    _dearest: dict[_Place, float] = field(default_factory=dict)
    _bought: dict[tuple[str, str, str], Any] = field(default_factory=dict)

    def about(self, deployment: str = "") -> Deployment:
        """Return what is known of a deployment, by default the case's own."""
        name = deployment or self.deployment
        if not self.subject.serves(name):
            raise NotRun(f"needs a deployment {name!r}")
        found = self.subject.target.deployments[name]
        if found.optional:
            try:
                self.subject.address(name)
            except ConformanceError:
                raise NotRun(f"needs a server that serves the policy {name!r}") from None
        return found

    def people(self, deployment: str = "", by: str = "") -> People:
        """Return a deployment's people, by one of its protected columns."""
        found = self.subject.target.people(deployment or self.deployment, by)
        if found is None:
            raise NotRun("needs the table of the test set")
        return found

    def number(
        self, value: float | str, caller: str = "developer", deployment: str = "", account: Account = "audits"
    ) -> float:
        """Work out a number that a case gives in terms of the target, such as "queries_max + 1"."""
        if not isinstance(value, str):
            return value
        match = _SUM.fullmatch(value)
        assert match is not None, "checked when the case was read"
        name, sign, other = match.groups()
        known = getattr(self.about(deployment), name) if name != "remaining" else None
        known = self.remaining(caller, deployment, account) if known is None else known
        return float(_OPERATIONS[sign](known, float(other)) if sign else known)

    def request_id(self, name: str) -> str:
        """Make a request id that no other case, service or run has used."""
        return f"{self.nonce}-{self.service[0]}-{name}"

    @property
    def results(self) -> dict[str, Result]:
        """What came of the steps of this service that others may refer to, by name."""
        return self._results.setdefault(self.service, {})

    @property
    def surveyed(self) -> list[Any]:
        """What surveys of this service have got so far."""
        return self._surveyed.setdefault(self.service, [])

    def channel(self, caller: str, deployment: str = "", *, another: bool = False) -> grpc.Channel:
        """Return a caller's connection, or open another one."""
        place = (caller, deployment or self.deployment)
        if another or place not in self._channels:
            self.about(deployment)
            opened = self.closing.enter_context(self._dial(caller, place[1]))
            if another:
                return opened
            self._channels[place] = opened
        return self._channels[place]

    @property
    def open_channels(self) -> frozenset[tuple[str, str]]:
        """Which caller has a connection to which deployment."""
        return frozenset(self._channels)

    def forget_connections(self) -> None:
        """Hang up: the server that they led to is gone."""
        self.closing.close()
        self._channels.clear()

    def put_back(self) -> None:
        """Leave nothing of deployments whose policy or ledger the case has changed."""
        while self.changed:
            self.subject.clear(self.changed.pop())

    def forget_purchases(self, deployment: str) -> None:
        """Expect nothing of what was bought of a deployment: it is another one now."""
        self._bought = {key: answer for key, answer in self._bought.items() if key[1] != deployment}
        self._left = {key: left for key, left in self._left.items() if key[1] != deployment}
        self._exactly = {key: left for key, left in self._exactly.items() if key[1] != deployment}
        self._open = {key: those for key, those in self._open.items() if key[1] != deployment}
        self._dearest = {key: most for key, most in self._dearest.items() if key[1] != deployment}
        self.released = {key: told for key, told in self.released.items() if key[1] != deployment}

    def call(
        self,
        method: str,
        requests: list[bytes],
        caller: str = "developer",
        *,
        deployment: str = "",
        seconds: float | None = SECONDS,
        metadata: Metadata = (),
    ) -> Seen:
        """Make a call and wait for its end."""
        channel = self.channel(caller, deployment)
        started = calls.start(channel, method, requests, seconds, metadata, streamed=len(requests) != 1)
        return require_served(method, calls.finish(method, started))

    # What callers have left. A server that charges what it must not is found out whatever the case is about.

    def open_account(self, caller: str, deployment: str = "", account: Account = "audits") -> None:
        """Note what a caller has left before it is first charged."""
        place = (caller, deployment or self.deployment, account)
        if self.accounts and place not in self._left:
            terms = self.terms(caller, deployment, account)
            known = terms.answered and (account == "releases" or self.about(deployment).rule == "basic")
            self._left[place] = terms.messages[0].epsilon_remaining if known else math.nan
            if known and terms.messages[0].epsilon == terms.messages[0].epsilon_remaining:
                # Of an account that has spent nothing it is known to the last digit what it has.
                self._exactly[place] = _written(terms.messages[0].epsilon)
                self._dearest[place] = 0.0

    def enter(
        self,
        caller: str,
        deployment: str,
        request_id: str,
        epsilon: float,
        answer: Any,
        account: Account = "audits",
    ) -> None:
        """Enter an answer: the first one under a request id is charged, the others are the same."""
        place = (caller, deployment or self.deployment, account)
        key = (*place[:2], request_id)
        earlier = self._bought.get(key)
        if earlier is not None:
            if lasting(answer) != earlier:
                raise Violation(f"the same request got another answer: {_differences(earlier, lasting(answer))}")
            self._require_left_now(answer, place)
            return
        self._bought[key] = lasting(answer)
        told = MECHANISM_LAWS.get(self.about(deployment).mechanism)
        free = account == "audits" and told is not None and told.answers_for_nothing
        if answer.epsilon_charged != epsilon and not (free and answer.epsilon_charged == 0):
            raise Violation(f"a batch that offered epsilon {epsilon:,g} was charged {answer.epsilon_charged:,g}")
        if not answer.epsilon_charged and epsilon > self._dearest.get(place, epsilon):
            raise Violation(f"a batch of epsilon {epsilon:,g} was free, and none as dear has been bought")
        self._charge(place, request_id, answer.epsilon_charged)
        self._require_left(place, answer.epsilon_remaining, "an answer says that {} is left")
        self._require_left_now(answer, place)

    def leave_open(
        self, caller: str, deployment: str, request_id: str, epsilon: float, account: Account = "audits"
    ) -> None:
        """Note a request of which nobody knows whether it is charged, until it is answered under the same id."""
        place = (caller, deployment or self.deployment, account)
        if (*place[:2], request_id) not in self._bought:
            self._open.setdefault(place, {})[request_id] = epsilon

    def enter_together(
        self, caller: str, deployment: str, answers: dict[str, Any], account: Account = "audits"
    ) -> None:
        """Enter answers to requests that were made at the same time, whose order nobody knows, by request id."""
        place = (caller, deployment or self.deployment, account)
        fresh = {key: answer for key, answer in answers.items() if (*place[:2], key) not in self._bought}
        for key, answer in sorted(fresh.items(), key=lambda item: -item[1].epsilon_remaining):
            self._bought[(*place[:2], key)] = lasting(answer)
            self._charge(place, key, answer.epsilon_charged)
            self._require_left(
                place, answer.epsilon_remaining, "one of several answers at the same time says {} is left"
            )

    def require_numbers(
        self, caller: str, deployment: str, seen: Seen, epsilon: float, account: Account = "audits"
    ) -> None:
        """Demand that the numbers of a refusal are those of the policy, what the caller has left, and what it asked."""
        about, told = self.about(deployment), dict(seen.numbers)
        for name in ("people", "queries_max", "epsilon_max"):
            known = getattr(about, name)
            if known and name in told and told[name] != known:
                raise Violation(f"{seen.reason} tells {name} {told[name]!r}; it is {known!r}")
        if "epsilon_remaining" in told:
            left, needed = told["epsilon_remaining"], told["epsilon_needed"]
            expected = self.remaining(caller, deployment, account)
            if left != expected:
                raise Violation(f"{seen.reason} says that {left!r} is left; GetTerms says {expected!r}")
            if not needed > left:
                raise Violation(f"{seen.reason} says that {needed!r} is needed, and {left!r} is left")
            if (account == "releases" or about.rule == "basic") and needed != epsilon:
                raise Violation(f"{seen.reason} says that {needed!r} is needed; a batch of {epsilon!r} was asked for")

    def balance(self) -> None:
        """Demand that every caller has left what it should."""
        for place, left in self._left.items():
            caller, deployment, account = place
            if math.isnan(left):
                continue
            self._require_left(place, self.remaining(caller, deployment, account), f"{caller} has epsilon {{}} left")

    def _charge(self, place: _Place, request_id: str, epsilon: float) -> None:
        self._open.get(place, {}).pop(request_id, None)
        self._left[place] = self._left.get(place, math.nan) - epsilon
        if place in self._exactly:
            self._dearest[place] = max(self._dearest[place], epsilon)
            self._exactly[place] -= _written(epsilon)
            self._left[place] = float(self._exactly[place])

    def _require_left(self, place: _Place, told: float, said: str) -> None:
        """Demand that so much is left, to a thousandth of the smallest charge that can be told apart, or exactly.

        Without each of the requests that may be charged, or with it.
        """
        left, exactly = self._left.get(place, math.nan), self._exactly.get(place)
        unit = self.about(place[1]).unit
        charges = self._open.get(place, {}).values()
        either = [those for count in range(len(charges) + 1) for those in combinations(charges, count)]
        if not any(math.isnan(left) or abs(told - (left - sum(those))) < unit / 1000 for those in either):
            raise Violation(f"{said.format(repr(told))}; it should be {left!r}")
        if exactly is not None and told not in [_rounded_down(exactly - sum(map(_written, those))) for those in either]:
            raise Violation(f"{place[0]} is told that {told!r} is left; it is {_rounded_down(exactly)!r}, rounded down")

    def _require_left_now(self, answer: Any, place: _Place) -> None:
        if place[2] == "releases":  # their header says what was left, and nothing of now
            return
        is_told = answer.HasField("epsilon_remaining_now")
        now = answer.epsilon_remaining_now if is_told else answer.epsilon_remaining
        self._require_left(place, now, "an answer says that {} is left now")

    def remaining(self, caller: str, deployment: str = "", account: Account = "audits") -> float:
        """Ask what a caller has left."""
        terms = self.terms(caller, deployment, account)
        if not terms.answered:
            raise Violation(f"who asked for the terms {terms.text}")
        return float(terms.messages[0].epsilon_remaining)

    def terms(self, caller: str, deployment: str = "", account: Account = "audits") -> Seen:
        """Ask for a caller's terms."""
        method, request = TERMS[account]
        asked = request(deal_id=self.about(deployment).deal)
        return self.call(method, [asked.SerializeToString()], caller, deployment=deployment)

    def offers(self, service: Service) -> bool:
        """Say whether the server sells this, and the deployment does; one that has not the method does not."""
        about = self.about()
        if service not in _OFFERS or not (about.groups if service == "by_group" else about.releases):
            return service not in _OFFERS
        if service not in self.subject.offers:
            try:
                self.call(_OFFERS[service], [b""], "developer")
            except NotRun:
                self.subject.offers[service] = False
        return self.subject.offers.setdefault(service, True)

    def _dial(self, caller: str, deployment: str) -> grpc.Channel:
        target, address = self.subject.target, self.subject.address(deployment)
        if caller == "plain-text":
            return calls.dial(address, self.server, target.name, None, tls=False)
        if caller == "no-certificate":
            known = self.credentials("developer")
            return calls.dial(address, self.server, target.name, Credentials("", "", known.authority, "", ""))
        credentials = self.credentials(caller)
        if caller == "another-authority":
            # It trusts the server, so that it is the server that has to refuse.
            trusted = self.credentials("developer").authority
            credentials = Credentials("", "", trusted, credentials.certificate, credentials.key)
        return calls.dial(address, self.server, target.name, credentials)

    def credentials(self, caller: str) -> Credentials:
        """Return the credentials that a caller, or a server, shows."""
        target = self.subject.target
        found = target.credentials(caller)
        if found is None and caller == "another-authority":
            return Authority("another").party(target.name, "developer", target.developer("developer"))
        if found is None:
            raise NotRun(f"needs credentials for {caller!r}")
        return found


@contextmanager
def closing(world: World) -> Iterator[World]:
    """Hang up every connection of a case in the end, give up what is still under way, and put its policies back."""
    try:
        yield world
    finally:
        for call in world.held:
            call.release.set()
            call.call.cancel()
        world.closing.close()
        world.put_back()


def require_served(method: str, seen: Seen) -> Seen:
    """Pass on how a call ended; a service that not every server has is not there where it is not implemented."""
    sells = next((sells for name, sells in SELLS.items() if name in method), None)
    if sells is not None and seen.status is grpc.StatusCode.UNIMPLEMENTED:
        raise NotRun(f"needs a server that {sells}")
    return seen


def _written(amount: float) -> Fraction:
    """Return an amount as it was written: the shortest decimal that reads back as it."""
    return Fraction(repr(amount))


def _rounded_down(left: Fraction) -> float:
    """Return the largest float64 that is no more than it."""
    told = float(left)
    while _written(told) > left:
        told = math.nextafter(told, 0.0)
    return told


def lasting(answer: Any) -> Any:
    """Return an answer without what a repeat may say otherwise."""
    kept = type(answer)()
    kept.CopyFrom(answer)
    if "epsilon_remaining_now" in answer.DESCRIPTOR.fields_by_name:
        kept.ClearField("epsilon_remaining_now")
    return kept


def valid_number(value: str) -> bool:
    """Say whether a case may give a number like this."""
    match = _SUM.fullmatch(value)
    return match is not None and (match[1] in ("remaining", "features") or match[1] in Deployment.model_fields)


def _differences(one: Any, other: Any) -> str:
    names = [each.name for each in one.DESCRIPTOR.fields if getattr(one, each.name) != getattr(other, each.name)]
    return ", ".join(names)
