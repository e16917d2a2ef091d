"""The claims of [LD] that are arithmetic, and its authors' figures seed by seed.

[LD]: Arcolezi, Makhlouf, Palamidessi, "(Local) Differential Privacy has NO Disparate Impact on Fairness", DBSec 2023.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairwall.laws.local import LOCAL_LAWS, EncodingDistribution, enumerated_loss, split
from sim.papers.finding import ROUNDING, CheckResult, to_rounding
from sim.papers.play import rows

_EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_DOMAINS = (2, 3, 4, 5)
_FAIRNESS = {"SPD": 0.0, "DI": 1.0, "EOD": 0.0, "OAD": 0.0}
_UTILITY = ("acc", "f1", "auc", "recall")


def exact_epsilon() -> CheckResult:
    """Check Section 3.3: GRR, BLH, RAPPOR, OUE, SS and OLH are epsilon-LDP. Every output is listed."""
    worst, cases = 0.0, 0
    for name, k, epsilon in itertools.product(("grr", "blh", "rappor", "oue", "ss", "olh"), _DOMAINS, _EPSILONS):
        worst = max(worst, abs(_loss(LOCAL_LAWS[name].law(k, epsilon)) - epsilon))
        cases += 1
    found = f"the largest log-ratio over all outputs is epsilon, to {worst:.0e}, in {cases} cases"
    return to_rounding(found, worst, cases=cases)


def thresholded_histogram() -> CheckResult:
    """Check Section 3.3, THE: the thresholded bits that are released are within epsilon. Every output is listed."""
    over, share = -math.inf, {}
    for k, epsilon in itertools.product(_DOMAINS, _EPSILONS):
        loss = _loss(LOCAL_LAWS["the"].law(k, epsilon))
        over = max(over, loss - epsilon)
        share[epsilon] = loss / epsilon
    return CheckResult(
        f"the released bits cost {min(share.values()):.2f} to {max(share.values()):.2f} of epsilon",
        "" if over <= ROUNDING else f"costs {over:g} too much",
        {"least": min(share.values()), "most": max(share.values())},
    )


def printed_subset_size() -> CheckResult:
    """Check Section 3.3: the subset of SS has floor(k / (e^epsilon + 1)) values."""
    empty = [
        (k, epsilon) for k, epsilon in itertools.product((2, 5, 24, 41, 50, 74), _EPSILONS) if k < math.exp(epsilon) + 1
    ]
    k, epsilon = empty[0]
    return CheckResult(
        f"in {len(empty)} of 36 cases of the paper's domains and epsilons the subset has no value at all",
        f"k = {k}, epsilon {epsilon:g}: {k} / (e^{epsilon:g} + 1) is {k / (math.exp(epsilon) + 1):.2f}, rounded down "
        "0: the empty set is released, which says nothing",
        {"empty": len(empty)},
    )


def shares_add_up() -> CheckResult:
    """Check Section 4: k-based shares add up to epsilon, and are uniform where all domains are equal."""
    worst = 0.0
    cases = [domains for size in (1, 2, 3, 4) for domains in itertools.product((2, 3, 5, 41, 74), repeat=size)]
    for domains, epsilon in itertools.product(cases, _EPSILONS):
        shares = split("k-based", domains, epsilon)
        worst = max(worst, abs(sum(shares) - epsilon))
        if len(set(domains)) == 1:
            worst = max(worst, max(abs(share - epsilon / len(domains)) for share in shares))
    tried = len(cases) * len(_EPSILONS)
    return to_rounding(f"in {tried:,} cases, to {worst:.0e}", worst, cases=tried)


def one_value_subsets() -> CheckResult:
    """Check Section 3.3: SS with subsets of one value is GRR."""
    worst, cases = 0.0, 0
    for k, epsilon in itertools.product(_DOMAINS, _EPSILONS):
        law = LOCAL_LAWS["ss"].law(k, epsilon)
        if k / (math.exp(epsilon) + 1) < 1.5:
            ours, theirs = law.probabilities()[1], LOCAL_LAWS["grr"].law(k, epsilon).probabilities()[1]
            worst, cases = max(worst, float(np.abs(ours - theirs).max())), cases + 1
    return to_rounding(f"the same probabilities in {cases} cases, to {worst:.0e}", worst, cases=cases)


def ratio_at_a_quarter() -> CheckResult:
    """Check Section 1: at epsilon = 0.25 two inputs' probabilities of an output differ by a factor of at most 1.3."""
    ratio = math.exp(0.25)
    return CheckResult(f"e^0.25 is {ratio:.4f}", "" if ratio <= 1.3 else f"{ratio:.4f}", {"ratio": ratio})


def official(seeds: Path, clean: Path) -> list[Mapping[str, Any]]:
    """Return the authors' figures, a line for each cell and seed; clean values have protocol "none"."""
    return [*rows(seeds), *({**row, "protocol": "none"} for row in rows(clean))]


def ranks(seeds: Path) -> list[Mapping[str, Any]]:
    """Return the protocols' mean ranks in the authors' figures: a line for each data set and seed.

    In each split and epsilon, protocols are ranked by each metric's distance from its best value, 1 being best; ranks
    are averaged over metrics, splits and epsilons, as ``PROTOCOL_utility``, ``_fairness`` and ``_both``.
    """
    from scipy.stats import rankdata

    found: dict[tuple[str, float], dict[str, list[float]]] = {}
    cells: dict[tuple[Any, ...], dict[str, Mapping[str, Any]]] = {}
    for row in rows(seeds):
        cells.setdefault((row["dataset"], row["seed"], row["split"], row["epsilon"]), {})[row["protocol"]] = row
    for (data, seed, *_), by_protocol in cells.items():
        kept = found.setdefault((data, seed), {})
        for kind, distances in _distances(by_protocol):
            for protocol, rank in zip(by_protocol, rankdata(distances).tolist(), strict=True):
                kept.setdefault(f"{protocol}_{kind}", []).append(rank)
                kept.setdefault(f"{protocol}_both", []).append(rank)
    return [
        {"dataset": data, "seed": seed, **{key: sum(each) / len(each) for key, each in kept.items()}}
        for (data, seed), kept in found.items()
    ]


def spread(seeds: Path) -> list[Mapping[str, Any]]:
    """Return the number of seeds and the standard error of mean accuracy, for each cell of the authors' figures."""
    cells: dict[tuple[Any, ...], list[float]] = {}
    for row in rows(seeds):
        cells.setdefault((row["dataset"], row["protocol"], row["split"], row["epsilon"]), []).append(float(row["acc"]))
    return [
        {"cell": number, "runs": len(found), "error": float(np.std(found, ddof=1)) / math.sqrt(len(found))}
        for number, found in enumerate(cells.values())
    ]


def tables(adult: Path, acs: Path, lsac: Path) -> list[Mapping[str, Any]]:
    """Return, in one line, the numbers of rows and of sensitive columns' values of the three tables."""
    line: dict[str, Any] = {"table": 0}
    sensitive = {
        "adult": (adult, ("gender", "race", "native-country", "age")),
        "acs": (acs, ("DIS", "AGEP", "SEX", "SCHL")),
        "lsac": (lsac, ("race1", "fam_inc", "gender", "fulltime")),
    }
    for name, (path, columns) in sensitive.items():
        there = rows(path)
        line[f"{name}_rows"] = len(there)
        line |= {f"{name}_{number}": len({row[key] for row in there}) for number, key in enumerate(columns)}
    return [line]


def _loss(law: EncodingDistribution) -> float:
    return enumerated_loss(law.probabilities()[1])


def _distances(by_protocol: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Sequence[float]]]:
    for key, best in _FAIRNESS.items():
        yield "fairness", [abs(row[key] - best) for row in by_protocol.values()]
    for key in _UTILITY:
        yield "utility", [1 - row[key] for row in by_protocol.values()]
