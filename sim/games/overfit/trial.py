"""A trial of the overfit game: its outcome, the dealer that takes it, its line, and the summary of a cell's lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from grpc import ServicerContext
from numpy.typing import NDArray

from compliance.mechanisms import find_mechanism
from fairwall.arrays import Bytes, Ints
from fairwall.game.v1 import overfit_service_pb2 as wire
from fairwall.game.v1.overfit_service_pb2_grpc import OverfitServiceServicer, add_OverfitServiceServicer_to_server
from fairwall.laws.studies.overfitting import bound, entropy, expected_gap, told_by_counts, told_by_private
from fairwall.learning.sealed import KEY_BYTES, sealed_decisions, votes
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.game import Line
from sim.games.overfit.deal import OverfitDeal, deal
from sim.games.overfit.scenario import OverfitScenario
from sim.games.referee import Arrays, TableDealer, deals
from sim.games.submissions import AuditRecord, AuditReport, bits_of, drawn_again, report_of, submission_of, take_guess
from sim.games.summary import mean, sd
from sim.games.table import Trial, given
from sim.scenarios.scenario import plain
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class Patches:
    """The developer's patches to its model.

    Attributes
    ----------
    rows : patched rows in the developer's order, by number among all rounds' rows.
    enough : number of patches that the developer expects to suffice.
    favours : (models,), whether each sealed model votes for the people it accepts; None where rows are patched by
        number.
    """

    rows: tuple[int, ...]
    enough: int
    favours: Bytes | None = None


@dataclass(frozen=True, eq=False)
class OverfitOutcome:
    """The patches, the key of the sealed models (empty where there are none), and compliance's report."""

    patches: Patches
    key: bytes
    report: AuditReport


def from_messages(
    cell: Cell[OverfitScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[OverfitDeal, OverfitOutcome]:
    """Return a trial's deal, drawn again, and its outcome from the messages; NotRecorded where a value is missing."""
    request = submission_of(trial, "SubmitPatches")
    dealt = drawn_again(deal, cell, number, trial, secret, lambda dealt: dealt.compliance.tested)
    key = submission_of(trial, "SubmitSealed").key if cell.scenario.committed else b""
    favours = bits_of(request.favours) if request.HasField("favours") else None
    return dealt, OverfitOutcome(Patches(tuple(request.patches), request.enough, favours), key, report_of(trial))


@dataclass
class _OverfitTrial(Trial):
    """State of a trial; `key` is that of the sealed models, once it is handed over."""

    deal: OverfitDeal
    submitted: Patches | None = None
    key: bytes = b""

    @property
    def dealable(self) -> bool:
        return bool(self.key) or not self.deal.scenario.committed

    @property
    def opened(self) -> bool:
        return self.served or not self.dealable


def _patches(request: wire.SubmitPatchesRequest, deal: OverfitDeal) -> Patches:
    """Decode patches; Refusal for too many, a repeated row, or an unknown row."""
    asked, committed, rows = deal.scenario.overfit, deal.scenario.committed, tuple(request.patches)
    sound = len(rows) == len(set(rows)) <= asked.flips and all(row < deal.asked.size for row in rows)
    if committed:
        sound = not rows and request.HasField("favours")
    if not sound or request.enough > (asked.flips if committed else len(rows)):
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    favours = take_guess(request.favours, (asked.models,)) if committed else None
    return Patches(rows, request.enough, favours)


def _arrays(deal: OverfitDeal) -> Arrays:
    pool, rows = deal.pool, deal.scenario.overfit.rows
    if rows == "committed":
        return {}
    arrays: Arrays = {"decisions": pool.decisions[deal.asked]}
    if rows != "hidden":
        arrays |= {"features": pool.features[deal.asked.ravel()], "weights": pool.weights}
    return arrays


def _overfit_deal(trial: _OverfitTrial) -> tuple[wire.OverfitDeal, Arrays]:
    deal, scenario, asked = trial.deal, trial.deal.scenario, trial.deal.scenario.overfit
    return wire.OverfitDeal(
        seed=deal.seed,
        attack=asked.attack,
        flips=asked.flips,
        models=asked.models if scenario.committed else 0,
        mechanism=scenario.compliance.mechanism,
        epsilon=scenario.epsilon,
        batch_delta=scenario.batch_delta,
        share=deal.pool.share,
        rounds=asked.rounds if asked.rounds > 1 else None,
    ), _arrays(deal)


class OverfitDealer(TableDealer[_OverfitTrial, OverfitDeal, OverfitOutcome], OverfitServiceServicer):
    """The OverfitService, for one deal at a time."""

    kind, serve = _OverfitTrial, staticmethod(add_OverfitServiceServicer_to_server)

    # Dealt once compliance serves, or before, where the developer must commit itself.
    TakeOverfitDeal = deals(wire.TakeOverfitDealResponse, _overfit_deal, lambda trial: trial.opened)

    def SubmitSealed(self, request: wire.SubmitSealedRequest, context: ServicerContext) -> wire.SubmitSealedResponse:
        """Take the key of the sealed models, which is dealt to compliance with the rows; a different key is refused."""
        with self.turn(request.deal_id, lambda _: True) as trial:
            if len(request.key) != KEY_BYTES:
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            if not trial.deal.scenario.committed or (trial.key or request.key) != request.key:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            if not trial.key:
                trial.key = request.key
                trial.deal = replace(trial.deal, compliance=replace(trial.deal.compliance, sealed=request.key))
        return wire.SubmitSealedResponse(served=self.table.wait(lambda: trial.served))

    def SubmitPatches(self, request: wire.SubmitPatchesRequest, context: ServicerContext) -> wire.SubmitPatchesResponse:
        """Take the developer's patches."""
        with self.turn(request.deal_id, lambda trial: trial.served) as trial:
            trial.submitted = _patches(request, trial.deal)
            return wire.SubmitPatchesResponse()

    def outcome(self, trial: _OverfitTrial) -> OverfitOutcome:
        """Return the outcome of a finished trial."""
        return OverfitOutcome(given(trial.submitted), trial.key, given(trial.report))


def gap(decisions: Bytes, protected: Bytes) -> float:
    """Return the advantaged's acceptance rate less the disadvantaged's; both groups must have rows."""
    return float(decisions[protected == 1].mean() - decisions[protected == 0].mean())


class Patched:
    """A trial's model with the first `count` patches of the developer."""

    def __init__(self, dealt: OverfitDeal, outcome: OverfitOutcome) -> None:
        self._pool, self._asked, self._patches = dealt.pool, dealt.asked.ravel(), outcome.patches
        self._votes: dict[bytes, Ints] = {}
        self._key = outcome.key

    def decisions(self, rows: NDArray[np.intp], count: int) -> Bytes:
        """Return the model's decisions on rows of the pool, given by number: (rows,)."""
        own = self._pool.decisions[rows]
        if self._patches.favours is None:
            patched = self._asked[list(self._patches.rows[:count])]
            return np.where(np.isin(self._pool.alike[rows], self._pool.alike[patched]), 1 - own, own)
        # The vote threshold that turns at most `count` of the audited rows.
        rejected = np.sort(self._voted(self._asked)[self._pool.decisions[self._asked] == 0])[::-1]
        above = rejected[count] if count < len(rejected) else -1
        return np.where(self._voted(rows) > above, 1, own).astype(np.uint8)

    def _voted(self, rows: NDArray[np.intp]) -> Ints:
        assert self._patches.favours is not None, "of sealed models"
        if (named := rows.tobytes()) not in self._votes:
            decided = sealed_decisions(self._key, self._pool.features[rows], len(self._patches.favours))
            self._votes[named] = votes(decided, self._patches.favours)
        return self._votes[named]


def shares(cells: NDArray[np.intp], protected: Bytes) -> tuple[Ints, Ints]:
    """Return the number of the pool's rows in each cell, and of disadvantaged rows among them: (cells,) each."""
    return np.bincount(cells), np.bincount(cells[protected == 0], minlength=int(cells.max()) + 1)


def told(dealt: OverfitDeal, audits: Iterable[AuditRecord], spent: float) -> float:
    """Return a bound, in nats, on the answers' information about A of the verdict's rows, given the developer's view.

    `spent` is the epsilon of all answers. Fresh rows of the verdict are in no answer: 0 nats.
    """
    batches = [(len(audit.exact), audit.epsilon) for audit in audits]
    if not batches or dealt.scenario.overfit.rows == "fresh":
        return 0.0
    sizes, few = shares(dealt.cells, dealt.pool.protected)
    seen = dealt.cells[dealt.audited]
    probable = few[seen] / sizes[seen]
    mechanism = dealt.scenario.compliance.mechanism
    bounds = [float(entropy(probable).sum())]
    if find_mechanism(mechanism).guarantee == "pure":
        bounds.append(told_by_private(probable, spent))
    if mechanism == "counts":
        bounds.append(told_by_counts(probable, batches))
    return min(bounds)


PASSES, STAYS = 0.02, 0.08
"""The largest audited gap and the smallest gap of the population with which the developer wins."""

_MEANS = ("n0", "answers", "gap_before", "gap", "fall", "population_before", "population", "population_fall")
_PARTS = ("overfit", "from_x", "from_answers")


def record(_cell: Cell[OverfitScenario], _trial: int, dealt: OverfitDeal, outcome: OverfitOutcome) -> list[Line]:
    """Return the trial's line, with the score of the patches.

    `gap` is the audited one with all patches, `gap_before` without; `population` likewise. `overfit` is the
    population's gap less the audited one. It is split at the audited gap expected from the developer's view before its
    requests: `from_x` is the part up to there, `from_answers` the rest, see `fairwall.laws.studies.overfitting`.
    `sigma` is the gap's sub-Gaussian constant, `nats` the most information in the answers. `won` is whether the patches
    that the developer expects to suffice pass, `to_pass` the number of its patches that would; null where none do.
    """
    scenario, asked, pool, report = dealt.scenario, dealt.scenario.overfit, dealt.pool, outcome.report
    model, protected, flips = Patched(dealt, outcome), pool.protected[dealt.audited], asked.flips
    gaps = [gap(model.decisions(dealt.audited, count), protected) for count in range(flips + 1)]
    held, of_held = dealt.population, pool.protected[dealt.population]
    population, before = (gap(model.decisions(held, count), of_held) for count in (flips, 0))
    stays = gap(model.decisions(held, enough := outcome.patches.enough), of_held)
    mean, sigma = expected_gap(
        model.decisions(dealt.audited, flips),
        dealt.cells[dealt.audited],
        *shares(dealt.cells, pool.protected),
        np.random.default_rng([*dealt.referee]),
    )
    return [
        {
            "n": len(protected),
            "n0": int((protected == 0).sum()),
            "rows": asked.rows,
            "attack": asked.attack,
            "flips": flips,
            "rounds": asked.rounds,
            "mechanism": scenario.compliance.mechanism,
            "epsilon": plain(scenario.epsilon),
            "answers": report.answered,
            "epsilon_spent": plain(report.epsilon_spent),
            "gap_before": gaps[0],
            "gap": gaps[-1],
            "fall": gaps[0] - gaps[-1],
            "population_before": before,
            "population": population,
            "population_fall": before - population,
            "overfit": population - gaps[-1],
            "from_x": population - mean,
            "from_answers": mean - gaps[-1],
            "sigma": sigma,
            "nats": told(dealt, report.audits, report.epsilon_spent),
            "enough": enough,
            "won": bool(abs(gaps[enough]) <= PASSES and stays >= STAYS),
            "to_pass": next((count for count, one in enumerate(gaps) if abs(one) <= PASSES), None),
        }
    ]


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    """Return the summary of a cell: means over trials, each with `_sd`, None for one trial.

    `sigma` is the root mean square, `nats` the mean, `bound` the largest expected `from_answers` under both. `won`
    counts trials; `to_pass` is the median number of patches, None where half of the trials passed with none.
    """
    sigma = float(np.sqrt(np.mean([line["sigma"] ** 2 for line in lines])))
    nats = float(np.mean([line["nats"] for line in lines]))
    needed = float(np.median([np.inf if line["to_pass"] is None else line["to_pass"] for line in lines]))
    return {
        **swept,
        "trials": len(lines),
        **{key: lines[0][key] for key in ("n", "rows", "attack", "flips", "rounds", "mechanism", "epsilon")},
        **{key: mean(lines, key) for key in (*_MEANS, *_PARTS)},
        **{f"{key}_sd": sd(lines, key) for key in (*_MEANS, *_PARTS)},
        "sigma": sigma,
        "nats": nats,
        "bound": bound(sigma, nats),
        "won": sum(line["won"] for line in lines),
        "to_pass": needed if np.isfinite(needed) else None,
    }
