"""A strategy's access to the audit service: it translates rows, divides the budget, and counts queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Decimal, localcontext
from itertools import count

import numpy as np

from developer.reveal.logistic_models import accuracy
from developer.reveal.strategies.sizes import group_sizes
from developer.reveal.translation import Play
from fairwall.arrays import Bytes, Floats
from fairwall.laws.mechanisms.table import MECHANISM_LAWS
from fairwall.laws.privacy.amounts import EXACT, at_most, written
from fairwall.wire.queries import Kind, request_id

Ask = Callable[[str, Floats, float], Floats]
"""A function that sends a batch: request id, predictions (models, people), and epsilon, to answers (models,)."""


class Purse:
    """A deal's budget, divided evenly over all queries, the size query included; it also numbers the requests.

    Parameters
    ----------
    epsilon : the budget of all queries together; may be infinite.
    mechanism : randomised response answers all batches from the first, which therefore gets the whole budget.
    planned : the number of queries to come, size queries included.
    numbers : the request numbers, shared if several purses pay for one deal; from 1 by default.
    """

    def __init__(self, epsilon: float, mechanism: str, planned: int, numbers: Iterator[int] | None = None) -> None:
        self._epsilon = epsilon
        self._at_once = MECHANISM_LAWS[mechanism].noise_on == "attributes"
        self._planned = planned
        self._numbers = numbers or count(1)
        self._asked = 0
        self._left = written(epsilon)

    def take(self, kind: Kind, queries: int) -> tuple[str, float]:
        """Return the next request's id, unique within the deal, and epsilon, for `queries` queries."""
        return request_id(kind, next(self._numbers)), self._share(queries)

    def plan(self, queries: int) -> None:
        """Plan for that many queries more."""
        self._planned += queries

    def give_up(self, queries: int) -> None:
        """Plan for that many queries fewer."""
        self._planned -= queries

    def _share(self, queries: int) -> float:
        if self._at_once or math.isinf(self._epsilon):
            return self._epsilon
        self._asked += queries
        share = self._left
        if self._asked < self._planned:
            # In 15 digits of the budget, so that the last batch's share is a number too, and nothing is left over.
            digit = Decimal((0, (1,), written(self._epsilon).adjusted() - 14))
            share = min(share, Decimal(self._epsilon * queries / self._planned).quantize(digit, ROUND_FLOOR))
        taken = at_most(share)
        with localcontext(EXACT):
            self._left -= written(taken)
        return taken


@dataclass(eq=False)
class DealAuditor:
    """A strategy's auditor: it translates rows and sends them to the audit service for one deal.

    play : the people the strategy plays on, and the metric's translation.
    labels : (n,); None where the developer has none.
    base : returns the base model's scores on the test set, (n,); may wait for training to end.
    n0 : disadvantaged people in the play, once known; if public, known from the start, and a size query is forbidden.
    """

    send: Ask
    purse: Purse
    play: Play
    labels: Bytes | None
    base: Callable[[], Floats]
    n0: int | None = None
    size_queries: int = field(default=0, init=False)
    queries: int = field(default=0, init=False)
    given_up: int = field(default=0, init=False)
    max_prediction_change: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._public = self.n0 is not None
        self._reference: float | None = None
        self._accuracies: list[Floats] = []

    @property
    def accuracy_models(self) -> Floats | None:
        """Each queried model's accuracy on the test set, shape (queries,), in [0, 1]; None without labels."""
        return np.concatenate([np.empty(0), *self._accuracies]) if self.labels is not None else None

    def give_up(self, queries: int) -> None:
        """Renounce that many of the planned queries, before the first query."""
        self.given_up += queries
        self.purse.give_up(queries)

    def size(self, row: Floats) -> float:
        """Send the size query, shape (people reached,); everybody else is rejected."""
        self._require_unknown_size()
        play = self.play
        reference = self._ask_reference()
        self.size_queries += 1
        (answer,) = self._ask("size", play.size_row(row, self.base))
        gap = play.size_gap(float(answer), reference)
        self.n0 = group_sizes(gap, len(row))[0]
        return gap

    def sized_gaps(self, row: Floats, rows: Floats) -> tuple[float, Floats]:
        """Send the size query and metric queries in one batch, so compliance answers both with one mechanism."""
        self._require_unknown_size()
        answers = self.gaps(np.vstack([row, rows]), sizes=1)
        return float(answers[0]), answers[1:]

    def gaps(self, rows: Floats, sizes: int = 0) -> Floats:
        """Send metric queries, (m, people reached), the first `sizes` of which are size queries."""
        play, base = self.play, self.base()
        people = rows.shape[1]
        if play.needs_sizes and self.n0 is None:
            self.size(np.eye(1, people)[0])
        predictions = play.predictions(rows, base)
        reference = self._ask_reference()
        self.size_queries += sizes
        self.queries += len(rows) - sizes
        models = predictions[sizes:]
        self.max_prediction_change = max(self.max_prediction_change, float(np.abs(models - base).max()))
        if self.labels is not None:
            self._accuracies.append(accuracy(models, self.labels))
        n1 = None if self.n0 is None else people - self.n0
        answers = self._ask("sized" if sizes else "metric", predictions)
        return play.gap(answers, rows, self.n0, n1, reference)

    def _require_unknown_size(self) -> None:
        assert not self._public, "whoever knows N0 asks for no size"

    def _ask_reference(self) -> float:
        """Query the gap of everybody else, once, where every answer contains it; counted as a size query."""
        if not self.play.needs_reference:
            return 0.0
        if self._reference is None:
            self.size_queries += 1
            self._reference = float(self._ask("reference", self.play.reference(self.base()))[0])
        return self._reference

    def _ask(self, kind: Kind, predictions: Floats) -> Floats:
        request, epsilon = self.purse.take(kind, len(predictions))
        answers = self.send(request, predictions, epsilon)
        # A mechanism that gives no answer returns NaN; a gap of 0 is as little information. For a ratio, NaN and
        # infinity carry information.
        return answers if self.play.needs_sizes else np.nan_to_num(answers)
