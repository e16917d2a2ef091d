"""Purchases of sanitised attributes: terms, request and answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.compliance.v1 import release_service_pb2 as wire
from fairwall.compliance.v1.release_service_pb2_grpc import ReleaseServiceStub
from fairwall.rpc import arrays, channel

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""

RELEASE_SECONDS = 600.0


@dataclass(frozen=True)
class ReleasedColumn:
    """A sensitive column: its name, its values in the order of the encodings, and its share of epsilon."""

    name: str
    values: tuple[str, ...]
    share: float


@dataclass(frozen=True)
class ReleaseTerms:
    """The terms on which attributes are released.

    Parameters
    ----------
    people : int
        Number of people; the order is that of the table that both sides hold.
    protocol : str
        The protocol of local differential privacy; its law is ``fairwall.laws.local.LOCAL_LAWS[protocol]``.
    columns : tuple of ReleasedColumn
        The released columns, in the order of the encodings.
    epsilon, epsilon_remaining : float
        The whole budget, and what is left of it.
    """

    people: int
    protocol: str
    columns: tuple[ReleasedColumn, ...]
    epsilon: float
    epsilon_remaining: float


@dataclass(frozen=True, eq=False)
class Released:
    """Sanitised attributes.

    Parameters
    ----------
    encoded : ndarray, shape (people, values of all columns)
        uint8, zeros and ones; float64 if the protocol is ``the-server``. The columns' values are side by side.
    columns : mapping of str to ndarray
        Each column's part of ``encoded``, shape (people, values), by name.
    epsilons : mapping of str to float
        Epsilon of each column.
    epsilon_charged, epsilon_remaining : float
        Epsilon charged for the release, and the budget left then.
    """

    encoded: NDArray[Any] = field(repr=False)
    columns: Mapping[str, NDArray[Any]] = field(repr=False)
    epsilons: Mapping[str, float]
    epsilon_charged: float
    epsilon_remaining: float


def terms(service: ReleaseServiceStub, deal_id: str) -> ReleaseTerms:
    """Return the terms of releases. Costs nothing. grpc.RpcError if compliance refuses."""
    told = service.GetReleaseTerms(wire.GetReleaseTermsRequest(deal_id=deal_id), timeout=channel.CALL_SECONDS)
    return ReleaseTerms(
        people=told.people,
        protocol=told.protocol,
        columns=tuple(
            ReleasedColumn(one.name, tuple(one.values) or tuple(map(str, range(one.domain))), one.share)
            for one in told.columns
        ),
        epsilon=told.epsilon,
        epsilon_remaining=told.epsilon_remaining,
    )


def buy(service: ReleaseServiceStub, deal_id: str, request_id: str, epsilon: float) -> Released:
    """Buy a release, for this epsilon of each person's attributes together.

    The same request id again gets the same bits and costs nothing. grpc.RpcError if compliance refuses;
    fairwall.rpc.arrays.ArrayError if the release does not fit the terms.
    """
    columns = terms(service, deal_id).columns
    request = wire.SanitiseRequest(request_id=request_id, deal_id=deal_id, epsilon=epsilon)
    parts = iter(service.Sanitise(request, timeout=RELEASE_SECONDS))
    header = next(parts, wire.SanitiseResponse()).header
    encoded = arrays.gathered(header.encoded, (part.encoded_chunk for part in parts))
    ends = np.cumsum([len(column.values) for column in columns])
    if encoded.shape[1:] != (ends[-1],) or len(header.epsilons) != len(columns):
        raise arrays.ArrayError("what was released does not fit the terms")
    names = [column.name for column in columns]
    return Released(
        encoded=encoded,
        columns=dict(zip(names, np.split(encoded, ends[:-1], axis=1), strict=True)),
        epsilons=dict(zip(names, header.epsilons, strict=True)),
        epsilon_charged=header.epsilon_charged,
        epsilon_remaining=header.epsilon_remaining,
    )
