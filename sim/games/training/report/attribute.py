"""Who the groups are: the protected attribute of a table, and its groups."""

from __future__ import annotations

from sim.datasets import FORMATS, SHIPPED
from sim.datasets.case_study import CASE_STUDY
from sim.datasets.roles import Asked
from sim.games.training.scenario import TrainingData


def attribute(data: TrainingData) -> tuple[str, str]:
    """Name the protected attribute, and its groups: what is asked for, or else what the table has by default."""
    if data.source == CASE_STUDY:
        return "group", "the large group advantaged, the small one disadvantaged"
    known = SHIPPED.get(data.source) or next(
        (known.defaults for name, known in FORMATS.items() if data.source.startswith(f"{name}:")), None
    )
    asked = Asked(**data.roles, drop=data.drop)
    roles = asked if known is None else known.roles(asked)
    disadvantaged = "everybody else" if roles.disadvantaged is None else roles.disadvantaged
    return str(roles.protected), f"{roles.advantaged} advantaged, {disadvantaged} disadvantaged"
