"""The paper's printed figures against the paper's own printed formulas.

Two formulas are compared with the average errors that stand in Table 1 of Hamman, Chen, Dutta, FAccT 2023, and in
Table 4 of the preprint:

* Theorem 7 and Algorithm 3: Cauchy noise of a scale. The mean of its size does not exist; its median is the scale.
* Theorem 5: Laplace noise of a scale. The mean of its size is the scale, the median ln 2 times the scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairwall.laws.calibration import printed_conceal_scale, printed_laplace_scale
from sim.games.reveal.report.cells import ReportCell


@dataclass(frozen=True)
class PrintedError:
    """One cell's printed average error beside what the printed formula gives.

    Parameters
    ----------
    queries, epsilon, mechanism
        The cell.
    source : str
        Where the figure is printed.
    printed : float
        The average error as printed.
    formula : float
        The typical size of the printed formula's noise, which is its scale: Conceal's median, Laplace's mean.
    measured_median, measured_mean : float
        Of this run, whose noise is on the corrected sensitivity.
    """

    queries: int
    epsilon: float
    mechanism: str
    source: str
    printed: float
    formula: float
    measured_median: float
    measured_mean: float

    @property
    def ratio(self) -> float:
        """How many times smaller the printed figure is."""
        return self.formula / self.printed


def printed_errors(cells: Iterable[ReportCell]) -> tuple[PrintedError, ...]:
    """Compare every cell that has a printed average error, a finite budget, and a printed formula."""
    return tuple(error for cell in cells if (error := _printed_error(cell)) is not None)


def _printed_error(cell: ReportCell) -> PrintedError | None:
    paper = cell.paper
    if (
        paper is None
        or not paper.query_error_mean
        or not cell.noisy
        or cell.summary["metric"] != "sp"
        or "query_error_mean" not in cell.summary
    ):
        return None
    n = int(cell.summary["n"])
    n0 = round(cell.summary["n0"])
    match cell.mechanism:
        case "conceal":
            formula = printed_conceal_scale(n0, n - n0, cell.queries, cell.epsilon)
        case "laplace":
            formula = printed_laplace_scale(n, cell.queries, cell.epsilon)
        case _:
            return None
    return PrintedError(
        queries=cell.queries,
        epsilon=cell.epsilon,
        mechanism=cell.mechanism,
        source=paper.source,
        printed=paper.query_error_mean,
        formula=formula,
        measured_median=cell.summary["query_error_median"],
        measured_mean=cell.summary["query_error_mean"],
    )


@dataclass(frozen=True)
class Contest:
    """In how many of the cells that have both Conceal, as printed, is noisier than Laplace, as printed.

    Parameters
    ----------
    cells : int
        How many have both.
    by_median, by_mean : int
        Conceal's median size above Laplace's median, and above Laplace's larger mean.
    """

    cells: int
    by_median: int
    by_mean: int


def contest(errors: Sequence[PrintedError]) -> Contest:
    """Set the two printed formulas against each other, cell by cell."""
    scales = {(error.queries, error.epsilon, error.mechanism): error.formula for error in errors}
    pairs = [
        (scale, scales[queries, epsilon, "laplace"])
        for (queries, epsilon, mechanism), scale in scales.items()
        if mechanism == "conceal" and (queries, epsilon, "laplace") in scales
    ]
    return Contest(
        cells=len(pairs),
        by_median=sum(conceal > math.log(2) * laplace for conceal, laplace in pairs),
        by_mean=sum(conceal > laplace for conceal, laplace in pairs),
    )


def lower_everywhere(errors: Sequence[PrintedError]) -> bool:
    """Tell whether the printed average errors have Conceal below Laplace in every cell that has both."""
    printed = {(error.queries, error.epsilon, error.mechanism): error.printed for error in errors}
    pairs = [
        (error.printed, printed[error.queries, error.epsilon, "laplace"])
        for error in errors
        if error.mechanism == "conceal" and (error.queries, error.epsilon, "laplace") in printed
    ]
    return bool(pairs) and all(conceal < laplace for conceal, laplace in pairs)
