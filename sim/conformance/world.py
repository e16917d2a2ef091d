"""The state of one case: the server, callers' connections, the answers so far, and the expected budgets."""

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

from fairwall.arrays import Floats
from fairwall.compliance.v1.audit_service_pb2 import GetTermsRequest
from fairwall.compliance.v1.release_service_pb2 import GetReleaseTermsRequest
from fairwall.laws.mechanisms.table import MECHANISM_LAWS
from fairwall.rpc.identity import Credentials
from sim.conformance import calls
from sim.conformance.calls import CallResult, Metadata, ProtocolViolation
from sim.conformance.certificates import LaxAuthority
from sim.conformance.inputs import ConformanceError
from sim.conformance.subject import ServerUnderTest
from sim.conformance.target import DescribedDeployment, KnownPeople

SECONDS = 20.0
"""Deadline in seconds of a call that should succeed."""

Service: TypeAlias = Literal["audit", "by_group", "sanitise", "sealed", "table"]
"""A service that charges a budget; the last two audit models that are handed over, and tables."""

PLACES: dict[Service, str] = {"sealed": "sealed", "table": "tables"}
"""Deployment of each service that has one of its own, whichever deployment a case is about."""

Account: TypeAlias = Literal["audits", "releases"]
"""The budget charged; counts by group use that of audits."""

TERMS: dict[Account, tuple[str, Any]] = {
    "audits": ("/fairwall.compliance.v1.AuditService/GetTerms", GetTermsRequest),
    "releases": ("/fairwall.compliance.v1.ReleaseService/GetReleaseTerms", GetReleaseTermsRequest),
}
"""Method and request that return each budget's remainder."""

SELLS = {
    "GroupService/": "counts by group",
    "ReleaseService/": "releases attributes",
    "/AuditSealed": "scores models",
    "/AuditTable": "adds up tables",
}
"""Optional services: a part of their methods' names, and what a server with it does."""

_OFFERS = {"by_group": "/fairwall.compliance.v1.GroupService/GetGroupTerms", "sanitise": TERMS["releases"][0]}

_Place: TypeAlias = tuple[str, str, Account]
"""An account: the caller, the deployment and the budget."""

_OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_SUM = re.compile(r"([a-z_]+)(?:\s*([-+*/])\s*([0-9.e-]+))?")


class NotRun(Exception):
    """A case that cannot be run on this target; the text says what is missing."""


class Over(Exception):
    """The end of a case that is decided before its last step: it has passed."""


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a step, for later steps."""

    seen: CallResult
    noise: Floats | None = None
    exact: Floats | None = None
    uniform: Floats | None = None
    """Answers mapped to numbers that are uniform if the noise has its distribution: see `sim.conformance.promise`."""
    discrete: bool = False
    """Whether noise is whole numbers, two of which may be equal by chance."""


@dataclass
class CaseState:
    """The state of one case, about a deployment of the party `server`.

    The nonce makes this run's request ids unique. With `accounts` callers' remaining budgets are checked. A step is run
    on the `service`, with its own named results there; or on all `services` of the case at once.
    """

    subject: ServerUnderTest
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

    def about(self, deployment: str = "") -> DescribedDeployment:
        """Return the description of a deployment, by default the case's own."""
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

    def people(self, deployment: str = "", by: str = "") -> KnownPeople:
        """Return a deployment's people, with groups by one of its protected columns."""
        found = self.subject.target.people(deployment or self.deployment, by)
        if found is None:
            raise NotRun("needs the table of the test set")
        return found

    def number(
        self, value: float | str, caller: str = "developer", deployment: str = "", account: Account = "audits"
    ) -> float:
        """Return a number that a case gives in terms of the target, such as "queries_max + 1"."""
        if not isinstance(value, str):
            return value
        match = _SUM.fullmatch(value)
        assert match is not None, "checked when the case was read"
        name, sign, other = match.groups()
        known = getattr(self.about(deployment), name) if name != "remaining" else None
        known = self.remaining(caller, deployment, account) if known is None else known
        return float(_OPERATIONS[sign](known, float(other)) if sign else known)

    def request_id(self, name: str) -> str:
        """Return a request id that no other case, service or run has used."""
        return f"{self.nonce}-{self.service[0]}-{name}"

    @property
    def results(self) -> dict[str, Result]:
        """Results of this service's steps, by name."""
        return self._results.setdefault(self.service, {})

    @property
    def surveyed(self) -> list[Any]:
        """Batches of this service's surveys so far."""
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
        """Caller and deployment of each open connection."""
        return frozenset(self._channels)

    def forget_connections(self) -> None:
        """Close all connections: the server that they led to is gone."""
        self.closing.close()
        self._channels.clear()

    def put_back(self) -> None:
        """Clear the deployments whose policy or ledger the case has changed."""
        while self.changed:
            self.subject.clear(self.changed.pop())

    def forget_purchases(self, deployment: str) -> None:
        """Forget all purchases from a deployment, which was started anew."""
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
    ) -> CallResult:
        """Make a call and wait for its end."""
        channel = self.channel(caller, deployment)
        started = calls.start(channel, method, requests, seconds, metadata, streamed=len(requests) != 1)
        return require_served(method, calls.finish(method, started))

    # Remaining budgets: wrong charges are detected in every case, whatever the case is about.

    def open_account(self, caller: str, deployment: str = "", account: Account = "audits") -> None:
        """Record a caller's remaining budget before its first charge."""
        place = (caller, deployment or self.deployment, account)
        if self.accounts and place not in self._left:
            terms = self.terms(caller, deployment, account)
            known = terms.answered and (account == "releases" or self.about(deployment).rule == "basic")
            self._left[place] = terms.messages[0].epsilon_remaining if known else math.nan
            if known and terms.messages[0].epsilon == terms.messages[0].epsilon_remaining:
                # The balance of an unspent account is known to the last digit.
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
        """Enter an answer: the first one under a request id is charged, later ones must be equal."""
        place = (caller, deployment or self.deployment, account)
        key = (*place[:2], request_id)
        earlier = self._bought.get(key)
        if earlier is not None:
            if lasting(answer) != earlier:
                raise ProtocolViolation(
                    f"the same request got another answer: {_differences(earlier, lasting(answer))}"
                )
            self._require_left_now(answer, place)
            return
        self._bought[key] = lasting(answer)
        told = MECHANISM_LAWS.get(self.about(deployment).mechanism)
        free = account == "audits" and told is not None and told.answers_for_nothing
        if answer.epsilon_charged != epsilon and not (free and answer.epsilon_charged == 0):
            raise ProtocolViolation(
                f"a batch that offered epsilon {epsilon:,g} was charged {answer.epsilon_charged:,g}"
            )
        if not answer.epsilon_charged and epsilon > self._dearest.get(place, epsilon):
            raise ProtocolViolation(f"a batch of epsilon {epsilon:,g} was free, and none as dear has been bought")
        self._charge(place, request_id, answer.epsilon_charged)
        self._require_left(place, answer.epsilon_remaining, "an answer says that {} is left")
        self._require_left_now(answer, place)

    def leave_open(
        self, caller: str, deployment: str, request_id: str, epsilon: float, account: Account = "audits"
    ) -> None:
        """Record a request that may be charged or not, until an answer under the same id decides."""
        place = (caller, deployment or self.deployment, account)
        if (*place[:2], request_id) not in self._bought:
            self._open.setdefault(place, {})[request_id] = epsilon

    def enter_together(
        self, caller: str, deployment: str, answers: dict[str, Any], account: Account = "audits"
    ) -> None:
        """Enter answers, by request id, to simultaneous requests, whose order is not known."""
        place = (caller, deployment or self.deployment, account)
        fresh = {key: answer for key, answer in answers.items() if (*place[:2], key) not in self._bought}
        for key, answer in sorted(fresh.items(), key=lambda item: -item[1].epsilon_remaining):
            self._bought[(*place[:2], key)] = lasting(answer)
            self._charge(place, key, answer.epsilon_charged)
            self._require_left(
                place, answer.epsilon_remaining, "one of several answers at the same time says {} is left"
            )

    def require_numbers(
        self, caller: str, deployment: str, seen: CallResult, epsilon: float, account: Account = "audits"
    ) -> None:
        """Demand that a refusal's numbers are those of the policy, the remaining budget and the request."""
        about, told = self.about(deployment), dict(seen.numbers)
        for name in ("people", "queries_max", "epsilon_max"):
            known = getattr(about, name)
            if known and name in told and told[name] != known:
                raise ProtocolViolation(f"{seen.reason} tells {name} {told[name]!r}; it is {known!r}")
        if "epsilon_remaining" in told:
            left, needed = told["epsilon_remaining"], told["epsilon_needed"]
            expected = self.remaining(caller, deployment, account)
            if left != expected:
                raise ProtocolViolation(f"{seen.reason} says that {left!r} is left; GetTerms says {expected!r}")
            if not needed > left:
                raise ProtocolViolation(f"{seen.reason} says that {needed!r} is needed, and {left!r} is left")
            if (account == "releases" or about.rule == "basic") and needed != epsilon:
                raise ProtocolViolation(
                    f"{seen.reason} says that {needed!r} is needed; a batch of {epsilon!r} was asked for"
                )

    def balance(self) -> None:
        """Demand the expected remaining budget of every caller."""
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

    def _require_left(self, place: _Place, rest: float, sentence: str) -> None:
        """Demand a balance: exactly if it is known, else to 1/1000 of the unit; open requests may be charged or not."""
        left, exactly = self._left.get(place, math.nan), self._exactly.get(place)
        unit = self.about(place[1]).unit
        charges = self._open.get(place, {}).values()
        either = [those for count in range(len(charges) + 1) for those in combinations(charges, count)]
        if not any(math.isnan(left) or abs(rest - (left - sum(those))) < unit / 1000 for those in either):
            raise ProtocolViolation(f"{sentence.format(repr(rest))}; it should be {left!r}")
        if exactly is not None and rest not in [_rounded_down(exactly - sum(map(_written, those))) for those in either]:
            raise ProtocolViolation(
                f"{place[0]} is told that {rest!r} is left; it is {_rounded_down(exactly)!r}, rounded down"
            )

    def _require_left_now(self, answer: Any, place: _Place) -> None:
        if place[2] == "releases":  # a release's header has no current balance
            return
        is_told = answer.HasField("epsilon_remaining_now")
        now = answer.epsilon_remaining_now if is_told else answer.epsilon_remaining
        self._require_left(place, now, "an answer says that {} is left now")

    def remaining(self, caller: str, deployment: str = "", account: Account = "audits") -> float:
        """Return a caller's remaining budget, from its terms."""
        terms = self.terms(caller, deployment, account)
        if not terms.answered:
            raise ProtocolViolation(f"who asked for the terms {terms.text}")
        return float(terms.messages[0].epsilon_remaining)

    def terms(self, caller: str, deployment: str = "", account: Account = "audits") -> CallResult:
        """Request a caller's terms."""
        method, request = TERMS[account]
        asked = request(deal_id=self.about(deployment).deal)
        return self.call(method, [asked.SerializeToString()], caller, deployment=deployment)

    def offers(self, service: Service) -> bool:
        """Return whether the server and the deployment offer a service; an unimplemented method does not."""
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
            # The caller trusts the server, so that the server has to refuse.
            trusted = self.credentials("developer").authority
            credentials = Credentials("", "", trusted, credentials.certificate, credentials.key)
        return calls.dial(address, self.server, target.name, credentials)

    def credentials(self, caller: str) -> Credentials:
        """Return the credentials of a caller, or of a server."""
        target = self.subject.target
        found = target.credentials(caller)
        if found is None and caller == "another-authority":
            return LaxAuthority("another").party(target.name, "developer", target.developer("developer"))
        if found is None:
            raise NotRun(f"needs credentials for {caller!r}")
        return found


@contextmanager
def closing(world: CaseState) -> Iterator[CaseState]:
    """Close a case's connections at its end, cancel its open calls, and put its policies back."""
    try:
        yield world
    finally:
        for call in world.held:
            call.release.set()
            call.call.cancel()
        world.closing.close()
        world.put_back()


def require_served(method: str, seen: CallResult) -> CallResult:
    """Return the end of a call; raise NotRun if an optional service is not implemented."""
    sells = next((sells for name, sells in SELLS.items() if name in method), None)
    if sells is not None and seen.status is grpc.StatusCode.UNIMPLEMENTED:
        raise NotRun(f"needs a server that {sells}")
    return seen


def _written(amount: float) -> Fraction:
    """Return an amount as the shortest decimal that reads back as the same float."""
    return Fraction(repr(amount))


def _rounded_down(amount: Fraction) -> float:
    """Return the largest float64 that is not above an amount."""
    told = float(amount)
    while _written(told) > amount:
        told = math.nextafter(told, 0.0)
    return told


def lasting(answer: Any) -> Any:
    """Return an answer without the fields that a repeat may change."""
    kept = type(answer)()
    kept.CopyFrom(answer)
    if "epsilon_remaining_now" in answer.DESCRIPTOR.fields_by_name:
        kept.ClearField("epsilon_remaining_now")
    return kept


def valid_number(value: str) -> bool:
    """Return whether a case may give this number."""
    match = _SUM.fullmatch(value)
    return match is not None and (match[1] in ("remaining", "features") or match[1] in DescribedDeployment.model_fields)


def _differences(one: Any, other: Any) -> str:
    names = [each.name for each in one.DESCRIPTOR.fields if getattr(one, each.name) != getattr(other, each.name)]
    return ", ".join(names)
