"""What a request of the reveal game asks for, told by its id: ``size-1``, ``metric-2``, ``metric-3``, ...

The developer numbers the requests of a deal and puts the kind in front. Compliance does not look at it: it answers all
kinds alike. Referee and `fairwall verify` tell by it which answers are about the metric.
"""

from __future__ import annotations

from typing import Literal, get_args

Kind = Literal["look", "metric", "size", "reference", "sized"]
"""
* ``look``: the base model as it is, where the test set is hidden: the rows come with the question. A metric query.
* ``metric``: models whose gaps are of interest.
* ``size``: a model that accepts one person, whose gap tells how large the groups are.
* ``reference``: a model whose gap is that of the people who are not played on, to be taken off later answers.
* ``sized``: a size query first and then metric queries, in one batch.
"""

_KINDS: tuple[Kind, ...] = get_args(Kind)


def request_id(kind: Kind, number: int) -> str:
    """Name a request of a deal, the ``number``-th of them, from 1."""
    return f"{kind}-{number}"


AUDITED = "audited"
"""The id of the request that the washing game's audit is about; what is asked under other ids is to find out more."""


def trained_on(deal: str) -> str:
    """Name the case of the people whose attributes a deal of the release game releases, who are trained on."""
    return f"{deal}/trained"


def round_of(deal: str, number: int) -> str:
    """Name the case of a round's rows, from 1, where the overfit game draws them anew; the first is the deal's own."""
    return deal if number == 1 else f"{deal}/round-{number}"


def deal_of(case: str) -> str:
    """Name the deal that a case belongs to; a deal's own case is called as it."""
    return case.partition("/")[0]


def kind_of(request: str) -> Kind:
    """Read what a request asks for off its id; ValueError if the id does not tell. The text is one line."""
    found, _, number = request.partition("-")
    for kind in _KINDS:
        if kind == found and number.isdecimal():
            return kind
    raise ValueError(f"request id {request!r} does not name its kind, as size-1 does: one of {', '.join(_KINDS)}")


def size_queries(request: str, queries: int) -> int:
    """Count which of a request's queries, the first ones, are counted as size queries rather than as metric queries.

    The request's id tells; ValueError if it does not.
    """
    match kind_of(request):
        case "size" | "reference":
            return queries
        case "sized":
            return min(queries, 1)
        case _:
            return 0
