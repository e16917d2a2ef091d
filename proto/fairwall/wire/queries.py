"""Kinds of requests of the reveal game, read from their ids: ``size-1``, ``metric-2``, ``metric-3``, ...

The developer numbers a deal's requests, with the kind in front. Compliance ignores the kind: it answers all alike. The
referee and `fairwall verify` find by it the answers about the metric.
"""

from __future__ import annotations

from typing import Literal, get_args

Kind = Literal["look", "metric", "size", "reference", "sized"]
"""* ``look``: the base model as it is, where the test set is hidden: the rows come with the question. A metric query.
* ``metric``: models whose gaps are of interest.
* ``size``: a model that accepts one person, whose gap reveals the groups' sizes.
* ``reference``: a model with the gap of the people who are not played on, to be subtracted from later answers.
* ``sized``: a size query first and then metric queries, in one batch.
"""

_KINDS: tuple[Kind, ...] = get_args(Kind)


def request_id(kind: Kind, number: int) -> str:
    """Return the id of the ``number``-th request of a deal, from 1."""
    return f"{kind}-{number}"


AUDITED = "audited"
"""Id of the request that the washing game's audit is about; other requests are to find out more."""


def trained_on(deal: str) -> str:
    """Return the case of the people who are trained on, whose attributes a deal of the release game releases."""
    return f"{deal}/trained"


def round_of(deal: str, number: int) -> str:
    """Return the case of a round's rows, from 1, if the overfit game draws new rows; the first is the deal's."""
    return deal if number == 1 else f"{deal}/round-{number}"


def deal_of(case: str) -> str:
    """Return the deal of a case; a deal's first case has the deal's name."""
    return case.partition("/")[0]


def kind_of(request: str) -> Kind:
    """Return the kind in a request's id; ValueError, with one line, if the id has none."""
    found, _, number = request.partition("-")
    for kind in _KINDS:
        if kind == found and number.isdecimal():
            return kind
    raise ValueError(f"request id {request!r} does not name its kind, as size-1 does: one of {', '.join(_KINDS)}")


def size_queries(request: str, queries: int) -> int:
    """Return the number of a request's first queries that count as size queries; ValueError as of `kind_of`."""
    match kind_of(request):
        case "size" | "reference":
            return queries
        case "sized":
            return min(queries, 1)
        case _:
            return 0
