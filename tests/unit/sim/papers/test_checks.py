"""What tries the papers' theorems: a check that finds no counterexample finds one where the mathematics is broken."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fairwall.laws.local import LOCAL_LAWS, split
from fairwall.laws.mechanisms.calibration import conceal_laplace_law
from fairwall.laws.noise.distributions import Laplace
from fairwall.learning.fairness import Leakage, leakage
from sim.datasets import load
from sim.papers.checks import attribute_reveal, fair_finetuning, local_privacy, private_fair

gap, loss, chances = attribute_reveal._gap, private_fair._loss, private_fair._log_chances


def too_little_noise(*arguments: Any) -> Laplace:
    return Laplace(conceal_laplace_law(*arguments).scale / 20)


def measured_otherwise(*arguments: Any, **named: Any) -> Leakage:
    """Everything 1% larger."""
    found = leakage(*arguments, **named)
    return replace(found, w=1.01 * found.w, eo=1.01 * found.eo, positive=found.positive * 1.01)


def at_twice(name: str) -> Any:
    """A protocol that spends twice what it is given."""
    law = LOCAL_LAWS[name]
    return replace(law, parameters=lambda k, epsilon: law.parameters(k, 2 * epsilon))


def unlike_grr() -> Any:
    """Subset selection with always one value more."""
    law = LOCAL_LAWS["ss"]
    return replace(law, parameters=lambda k, epsilon: LOCAL_LAWS["grr"].parameters(k, epsilon / 2))


TWINS: list[tuple[Callable[[], Any], Any, str, Any]] = [
    (attribute_reveal.alone, attribute_reveal, "_gap", lambda *given: abs(gap(*given))),
    (attribute_reveal.absolute_gaps, attribute_reveal, "_gap", lambda groups, row: gap(groups, row[::-1])),
    (attribute_reveal.equal_opportunity, attribute_reveal, "_gap", lambda *given: abs(gap(*given))),
    (attribute_reveal.signed_sensitivity, attribute_reveal, "_gap", lambda *given: Fraction(11, 10) * gap(*given)),
    (attribute_reveal.conceal_laplace_delta, attribute_reveal, "conceal_laplace_law", too_little_noise),
    (attribute_reveal.printed_scale_order, attribute_reveal, "printed_conceal_scale", lambda n0, *_: float(n0)),
    (fair_finetuning.pure_groups, fair_finetuning, "leakage", measured_otherwise),
    (fair_finetuning.group_predictor, fair_finetuning, "leakage", measured_otherwise),
    (fair_finetuning.floor_identity, fair_finetuning, "_decided", lambda labels, *_: np.ones_like(labels)),
    (local_privacy.exact_epsilon, local_privacy, "LOCAL_LAWS", {**LOCAL_LAWS, "oue": at_twice("oue")}),
    (local_privacy.thresholded_histogram, local_privacy, "LOCAL_LAWS", {**LOCAL_LAWS, "the": at_twice("the")}),
    (local_privacy.one_value_subsets, local_privacy, "LOCAL_LAWS", {**LOCAL_LAWS, "ss": unlike_grr()}),
    (local_privacy.shares_add_up, local_privacy, "split", lambda *given: (0.1, *split(*given)[1:])),
    (private_fair.composition, private_fair, "_loss", lambda law: loss(law) ** 2),
    (private_fair.exponential_mechanism, private_fair, "_log_chances", lambda weights: chances(3 * weights)),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("check", "module", "name", "broken"), TWINS, ids=[each[0].__name__ for each in TWINS])
def test_a_check_that_holds_fails_where_the_mathematics_is_broken(
    monkeypatch: pytest.MonkeyPatch, check: Callable[[], Any], module: Any, name: str, broken: Any
) -> None:
    assert check().counterexample == ""
    monkeypatch.setattr(module, name, broken)
    assert check().counterexample


REFUTED = [
    *(attribute_reveal.two_models, attribute_reveal.large_balanced, attribute_reveal.sensing_sign),
    *(attribute_reveal.few_answers, attribute_reveal.absolute_sensitivity, attribute_reveal.opportunity_sensitivity),
    *(attribute_reveal.conceal_loss, attribute_reveal.smooth_absolute, attribute_reveal.convexity_argument),
    *(fair_finetuning.equal_base_rates, fair_finetuning.smaller_bound, fair_finetuning.each_attribute),
    *(fair_finetuning.floor_without_guessing, fair_finetuning.small_shift, fair_finetuning.below_threshold),
    *(private_fair.one_of_a_thousand, private_fair.alice_was_there, private_fair.gaussian),
    *(private_fair.thresholds_read_people, private_fair.always_a_price, private_fair.most_utility_lost),
]


@pytest.mark.check
def test_a_refuted_claim_has_a_case_with_figures() -> None:
    for check in REFUTED:
        found = check()
        assert any(letter.isdigit() for letter in found.counterexample)
        assert found.figures


def test_table_1_cannot_come_from_the_printed_formulas() -> None:
    found = attribute_reveal.printed_formulas()
    ratios = {
        mechanism: [10**ratio for cell, ratio in found.figures.items() if cell.startswith(mechanism)]
        for mechanism in ("conceal", "laplace")
    }
    assert [len(each) for each in ratios.values()] == [12, 12]
    assert [round(bound(ratios["conceal"])) for bound in (min, max)] == [97, 3330]
    assert [round(bound(ratios["laplace"])) for bound in (min, max)] == [6, 131]
    assert "97 to 3,330 times smaller" in found.found
    assert attribute_reveal.printed_order().figures == {"printed": 12, "larger": 10, "cells": 12}


def test_one_ratio_by_hand() -> None:
    found = attribute_reveal.printed_formulas().figures
    near, far = 25 / 91 + 25 / 10, math.exp(-5 * 8 / 150) * (25 / 99 + 25 / 2)
    assert 10 ** found["conceal-100-10-25-5"] == pytest.approx(6 * max(near, far) / 5 / 0.0109)
    assert 10 ** found["laplace-100-10-25-5"] == pytest.approx((25 / 2 + 25 / 99) / 5 / 0.2009)


def test_german_credit_has_so_many_women() -> None:
    table = load("german", protected="sex", advantaged="male")
    assert (table.protected == 0).sum() == attribute_reveal._WOMEN


def test_a_repaired_formula_is_not_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise for N0 = 2 also where N0 = 1, Attribute-Conceal keeps what it claims."""
    printed = attribute_reveal.printed_conceal_scale
    monkeypatch.setattr(
        attribute_reveal,
        "printed_conceal_scale",
        lambda n0, n1, *rest: printed(max(n0, 2), n0 + n1 - max(n0, 2), *rest),
    )
    assert attribute_reveal.conceal_loss().counterexample == ""


def test_the_divergence_is_what_integration_gives() -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        shift, here, there, epsilon = (
            float(rng.uniform(*ends)) for ends in ((0.1, 2), (0.3, 2), (0.3, 2), (0.05, 1.5))
        )
        x = np.linspace(-80, 80, 400_001)
        p, q = np.exp(-np.abs(x) / here) / (2 * here), np.exp(-np.abs(x - shift) / there) / (2 * there)
        wanted = np.maximum(p - np.exp(epsilon) * q, 0).sum() * (x[1] - x[0])
        assert attribute_reveal._divergence(shift, here, there, epsilon) == pytest.approx(wanted, abs=1e-6)


def test_protocols_are_ranked_by_their_distance_from_the_best_value(tmp_path: Any) -> None:
    head = "dataset,protocol,split,epsilon,seed,acc,f1,auc,recall,SPD,DI,EOD,OAD\n"
    rows = (
        "d,GRR,uniform,1,0,.9,.9,.9,.9,-.1,.9,.1,.1\n"
        "d,SS,uniform,1,0,.8,.8,.8,.8,.3,1.2,-.3,.3\n"
        "d,BLH,uniform,1,0,.8,.7,.7,.7,.0,1.0,.0,.0\n"
    )
    path = tmp_path / "seeds.csv"
    path.write_text(head + rows)
    (line,) = local_privacy.ranks(path)
    assert [line[f"{name}_fairness"] for name in ("BLH", "GRR", "SS")] == [1, 2, 3]
    assert [line[f"{name}_utility"] for name in ("GRR", "SS", "BLH")] == [1, 2.125, 2.875]
    assert line["GRR_both"] == 1.5
