"""The kind of step that plays a referee's trials of the reveal game, and checks what each party is dealt.

A feature unrelated to the groups of 60 people, 17 of them disadvantaged, separates the groups with a probability of 2 /
C(60, 17) < 1e-13; so does any bit of it, and so does the order of the rows.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray
from pydantic import Field

from fairwall.arrays import Bytes, Floats
from fairwall.game.v1 import referee_service_pb2 as referee
from fairwall.game.v1 import reveal_service_pb2 as reveal
from fairwall.rpc import arrays
from sim.conformance.calls import ProtocolViolation
from sim.conformance.step_base import Words
from sim.conformance.world import CaseState, NotRun

_REFEREE = "/fairwall.game.v1.RefereeService/"
_REVEAL = "/fairwall.game.v1.RevealService/"
_PARTIES = ("compliance", "developer", "adversary", "referee")
_SECONDS = 40.0
_DEVIATIONS = 7.0
"""Standard deviations that fair bits exceed with a probability of 3e-12."""
_RUNS = 5
_FEW = 4
"""Different values that 16 random bytes exceed, but for a probability of 1e-20."""

Bits = Bytes


@dataclass(frozen=True, eq=False)
class _Dealt:
    compliance: Any
    developer: Any
    groups: Bits
    labels: Bits
    features: Floats


class Deals(Words):
    """A step that plays trials, and checks what is dealt."""

    do: Literal["deals"]
    trials: int = Field(default=1, ge=1, le=2)

    def run(self, world: CaseState) -> None:
        """Play the trials, and check their deals."""
        dealt: list[_Dealt] = []
        after = ""
        for number in range(self.trials):
            dealt.append(_deal(world, after))
            _check(dealt[-1])
            after = dealt[-1].compliance.deal_id
            if number + 1 < self.trials:
                _finish(world, dealt[-1])
        for one, other in itertools.pairwise(dealt):
            _check_unlike(one, other)


def _deal(world: CaseState, after: str) -> _Dealt:
    """Return both deals; each is taken twice, and must be the same."""
    take = [
        referee.TakeComplianceDealRequest(after_deal_id=after),
        reveal.TakeDeveloperDealRequest(after_deal_id=after),
    ]
    first = _take(world, "compliance", _REFEREE + "TakeComplianceDeal", take[0])
    deal = first[0].deal
    _call(world, "compliance", _REFEREE + "ServeTrial", referee.ServeTrialRequest(deal_id=deal.deal_id))
    second = _take(world, "unnamed", _REVEAL + "TakeDeveloperDeal", take[1])
    for caller, method, request, messages in (
        ("compliance", _REFEREE + "TakeComplianceDeal", take[0], first),
        ("unnamed", _REVEAL + "TakeDeveloperDeal", take[1], second),
    ):
        if _take(world, caller, method, request) != messages:
            raise ProtocolViolation("who asks for the same deal again is dealt another one")
    told = second[0].deal
    return _Dealt(
        deal,
        told,
        groups=_array(deal.audits.protected, first, "protected_chunk"),
        labels=_array(told.labels, second, "labels_chunk"),
        features=_array(told.features, second, "features_chunk"),
    )


def _finish(world: CaseState, dealt: _Dealt) -> None:
    """Submit what ends the trial."""
    people = len(dealt.groups)
    ones = arrays.to_message(np.ones(people, np.uint8))
    submitted = reveal.SubmitRevealRequest(
        deal_id=dealt.developer.deal_id,
        baseline=ones,
        guess=ones,
        targeted=ones,
        polarity_known=True,
        accuracy_base=0.5,
    )
    submitted.accuracy_models.CopyFrom(arrays.to_message(np.zeros(0)))
    _call(world, "unnamed", _REVEAL + "SubmitReveal", submitted)
    _call(world, "compliance", _REFEREE + "ServeTrial", referee.ServeTrialRequest(deal_id=dealt.compliance.deal_id))
    report = referee.SubmitAuditReportRequest(deal_id=dealt.compliance.deal_id)
    _call(world, "compliance", _REFEREE + "SubmitAuditReport", report)


def _take(world: CaseState, caller: str, method: str, request: Message) -> tuple[Any, ...]:
    """Return the messages of a deal, once there is one."""
    give_up = time.monotonic() + _SECONDS
    while True:
        messages = _call(world, caller, method, request)
        if not messages:
            raise ProtocolViolation("who asks for a deal is told nothing")
        if messages[0].WhichOneof("part") == "deal":
            return messages
        if messages[0].turn == referee.TURN_OVER or time.monotonic() > give_up:
            raise NotRun("needs a referee that plays two trials")


def _call(world: CaseState, caller: str, method: str, request: Message) -> tuple[Any, ...]:
    seen = world.call(method, [request.SerializeToString()], caller)
    if not seen.answered:
        raise ProtocolViolation(f"{method.rpartition('/')[2]} {seen.text}")
    return seen.messages


def _array(header: Any, messages: Iterable[Any], chunk: str) -> NDArray[Any]:
    return arrays.gathered(header, (getattr(message, chunk) for message in messages))


def _check(dealt: _Dealt) -> None:
    """Demand that the developer's deal reveals nothing about the groups."""
    groups, people = dealt.groups, len(dealt.groups)
    if dealt.features.shape[0] != people or len(dealt.labels) != people:
        raise ProtocolViolation("the two parties are not dealt the same people")
    if _is(dealt.labels, groups):
        raise ProtocolViolation("the labels that the developer is dealt tell the groups")
    columns = [dealt.features[:, number] for number in range(dealt.features.shape[1])]
    if any(_tells(column.astype(np.float64), groups) for column in columns):
        raise ProtocolViolation("a feature that the developer is dealt tells the groups")
    if _combine(dealt.features.astype(np.float64), groups):
        raise ProtocolViolation("the features that the developer is dealt tell the groups together")
    if np.count_nonzero(np.diff(groups.astype(int))) < _RUNS:
        raise ProtocolViolation("the order of the people tells the groups")
    sizes = {people - int(groups.sum()), int(groups.sum())}
    if dealt.developer.disadvantaged or sizes & set(_numbers(dealt.developer)):
        raise ProtocolViolation("the developer is told how many people are disadvantaged")
    _check_seeds(dealt)


def _is(values: NDArray[Any], groups: Bits) -> bool:
    """Return whether two-valued numbers are the groups, in the order of the people or in a simple other one."""
    found = np.unique(values)
    if len(found) != 2:
        return False
    ones = values == found[1]
    turned = [np.roll(each, shift) for each in (ones, ones[::-1]) for shift in range(len(ones))]
    return any((each == (groups == group)).all() for each in turned for group in (0, 1))


def _tells(column: Floats, groups: Bits) -> bool:
    """Return whether a column separates the groups, or one of its bits is the group."""
    one, zero = column[groups == 1], column[groups == 0]
    if one.min() > zero.max() or zero.min() > one.max() or _is(column, groups):
        return True
    for kind in (np.float64, np.float32):
        # The bits of each number, one row per person.
        bits = np.unpackbits(column.astype(kind).reshape(-1, 1).view(np.uint8), axis=1)
        if any((bit == groups).all() or (bit != groups).all() for bit in bits.T):
            return True
    return False


def _combine(features: Floats, groups: Bits) -> bool:
    """Return whether the groups are a linear function of features that are far fewer than the people."""
    people, columns = features.shape
    if columns + 1 > people // 3:
        return False
    design = np.column_stack([features, np.ones(people)])
    found = design @ np.linalg.lstsq(design, groups.astype(np.float64), rcond=None)[0]
    return bool(np.abs(found - groups).max() < 1e-6)


def _numbers(message: Message) -> Iterator[float]:
    for field, value in message.ListFields():
        if field.enum_type is not None:
            continue
        for each in value if field.is_repeated else [value]:
            if isinstance(each, Message):
                yield from _numbers(each)
            elif isinstance(each, int | float) and not isinstance(each, bool):
                yield each


def _check_seeds(dealt: _Dealt) -> None:
    """Demand that the two seeds are random, and that neither follows from the other."""
    theirs, own = dealt.compliance.seed, dealt.developer.seed
    if not theirs or not own:
        return
    if any(_guess == theirs for _guess in _derived(own, dealt.compliance.deal_id)):
        raise ProtocolViolation("compliance's seed follows from the developer's")
    if any(_guess == own for _guess in _derived(theirs, dealt.compliance.deal_id)):
        raise ProtocolViolation("the developer's seed follows from compliance's")
    _require_fair(bytes(a ^ b for a, b in zip(theirs, own, strict=False)), "the two parties' seeds are alike")
    if any(len(set(apart)) <= _FEW for apart in _apart(theirs, own)):
        raise ProtocolViolation("the two parties' seeds are a fixed distance apart")
    for seed in (theirs, own):
        if len(seed) < 16:
            raise ProtocolViolation(f"a seed has {len(seed)} bytes")
        _require_fair(seed, "a seed is not random")
    if theirs[:8] == own[:8] or theirs[-8:] == own[-8:]:
        raise ProtocolViolation("the two parties' seeds are alike")


def _apart(one: bytes, other: bytes) -> Iterator[list[int]]:
    pairs = list(zip(one, other, strict=False))
    yield [a ^ b for a, b in pairs]
    yield [(a - b) % 256 for a, b in pairs]


def _derived(seed: bytes, deal: str) -> Iterator[bytes]:
    """Yield what might be derived for another party from a seed, or from the deal's name alone."""
    words = [b"", deal.encode(), *(party.encode() for party in _PARTIES)]
    words += [each.encode() for party in _PARTIES for each in (f"{deal}/{party}", f"{deal}-{party}", f"{deal}{party}")]
    words += [number.to_bytes(size, "big") for number in range(4) for size in (1, 4, 8)]
    for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "blake2s", "sha3_256"):
        for word in words:
            for base in (seed, b"", seed.hex().encode()):
                for text in (base + word, word + base, base + b"/" + word, base + b":" + word):
                    digest = hashlib.new(name, text, usedforsecurity=False).digest()
                    yield from (digest[: len(seed)], digest.hex()[: len(seed)].encode())
    number = int.from_bytes(seed, "big")
    for step in (-3, -2, -1, 1, 2, 3):
        yield ((number + step) % 256 ** len(seed)).to_bytes(len(seed), "big")
    yield from (seed, seed[::-1], bytes(255 - byte for byte in seed), seed[1:] + seed[:1], seed[-1:] + seed[:-1])


def _require_fair(data: bytes, text: str) -> None:
    size = 8 * len(data)
    if abs(int.from_bytes(data, "big").bit_count() - size / 2) > _DEVIATIONS * math.sqrt(size) / 2:
        raise ProtocolViolation(text)


def _check_unlike(one: _Dealt, other: _Dealt) -> None:
    """Demand that another trial has a new deal."""
    if one.compliance.deal_id == other.compliance.deal_id:
        raise ProtocolViolation("two trials have the same deal")
    if (one.groups == other.groups).all() or (one.groups != other.groups).all():
        raise ProtocolViolation("two trials have the same groups")
    if one.features.shape == other.features.shape and (one.features == other.features).all():
        raise ProtocolViolation("two trials have the same people")
    for a, b in (
        (one.compliance, other.compliance),
        (one.developer, other.developer),
        (one.compliance, other.developer),
    ):
        if not a.seed or not b.seed:
            continue
        if any(guess == b.seed for guess in _derived(a.seed, b.deal_id)):
            raise ProtocolViolation("a trial's seed follows from another one's")
        _require_fair(bytes(x ^ y for x, y in zip(a.seed, b.seed, strict=False)), "two trials' seeds are alike")
