import itertools
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from developer.reveal.decode import Decoder, DecoderInputs, affine, box, l1, lstsq, omp

N0, N1 = 4, 36
V = np.where(np.arange(N0 + N1) < N0, -1 / N0, 1 / N1)
EXACT: dict[str, Decoder] = {"l1": l1.decode, "lstsq": lstsq.decode, "box": box.decode, "omp": omp.decode}
SPARSE = sorted(EXACT.keys() - {"lstsq"})
CLARABEL = {"solver": "CLARABEL", "tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9}
SCS = {"solver": "SCS", "eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 50_000}


def rows(m: int, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).uniform(0, 1, (m, V.size))


def norm_of_s(v: NDArray[np.float64], n1: int = N1) -> float:
    return float(np.abs(1 / n1 - v).sum())


def world(n: int, n0: int, m: int, seed: int, near: float | None = None) -> tuple[DecoderInputs, NDArray[np.bool_]]:
    """Draw uniform rows, or rows within ``near`` of skewed base scores, and whom their exact gaps are about."""
    rng = np.random.default_rng(seed)
    z = np.zeros(n, np.bool_)
    z[rng.permutation(n)[:n0]] = True
    H = rng.uniform(0, 1, (m, n))
    if near is not None:
        H = np.clip(rng.beta(0.5, 2, n) + near * (2 * H - 1), 0, 1)
    return DecoderInputs(H, H[:, ~z].mean(axis=1) - H[:, z].mean(axis=1), n0, n - n0), z


def disadvantaged(v: NDArray[np.float64], evidence: DecoderInputs) -> NDArray[np.bool_]:
    return 1 / evidence.n1 - v > 0.5 * (1 / evidence.n0 + 1 / evidence.n1)


def by_cvxpy(evidence: DecoderInputs, settings: dict[str, object]) -> NDArray[np.float64]:
    """Solve equation 5 for z with cvxpy; give v."""
    import cvxpy as cp

    c = 1 / evidence.n0 + 1 / evidence.n1
    z = cp.Variable(evidence.rows.shape[1])
    eta = (evidence.rows.sum(axis=1) / evidence.n1 - evidence.gaps) / c
    cp.Problem(cp.Minimize(cp.norm1(z)), [evidence.rows @ z == eta]).solve(**settings)
    return np.asarray(1 / evidence.n1 - c * z.value)


def test_v_is_found_from_half_as_many_rows() -> None:
    for decoder in SPARSE:
        H = rows(20)
        assert EXACT[decoder](DecoderInputs(H, H @ V, N0, N1)) == pytest.approx(V, abs=1e-9)


# lstsq does not know the size, which stands for one row.
def test_full_rank_determines_v() -> None:
    for decoder, m in (("l1", 39), ("box", 39), ("omp", 60), ("lstsq", 40)):
        H = rows(m)
        assert EXACT[decoder](DecoderInputs(H, H @ V, N0, N1)) == pytest.approx(V, abs=1e-9)


# Basis pursuit looks for few people.
def test_the_majority_may_be_the_disadvantaged() -> None:
    for decoder, m in (("box", 20), ("omp", 20), ("l1", 60)):
        H = rows(m)
        assert EXACT[decoder](DecoderInputs(H, H @ -V, N1, N0)) == pytest.approx(-V, abs=1e-9)


def test_l1_and_lstsq_are_least_squares_where_noise_leaves_no_solution() -> None:
    H = rows(60)
    gaps = H @ V + np.random.default_rng(1).normal(0, 0.1, 60)
    best = np.linalg.lstsq(H, gaps)[0]
    assert l1.decode(DecoderInputs(H, gaps, N0, N1)) == pytest.approx(best)
    assert lstsq.decode(DecoderInputs(H, gaps, 0, 0)) == pytest.approx(best)


@pytest.mark.parametrize("noise", [0, 1e6])
def test_l1_explains_the_answers_with_the_least_norm(noise: float) -> None:
    H = rows(15)
    gaps = H @ V + np.random.default_rng(1).normal(0, noise, 15)
    v = l1.decode(DecoderInputs(H, gaps, N0, N1))
    assert H @ v == pytest.approx(gaps, rel=1e-6, abs=1e-6 * max(noise, 1))
    # Another solution of the same equations: the one of least Euclidean norm.
    other = 1 / N1 - np.linalg.lstsq(H, H.sum(axis=1) / N1 - gaps)[0]
    assert norm_of_s(v) <= norm_of_s(other) * (1 + 1e-6)


def test_l1_takes_rows_that_contradict_one_another() -> None:
    H = np.repeat(rows(10), 2, axis=0)
    gaps = H @ V + np.tile([0.1, -0.1], 10)
    assert l1.decode(DecoderInputs(H, gaps, N0, N1)) == pytest.approx(
        l1.decode(DecoderInputs(H[::2], H[::2] @ V, N0, N1)), abs=1e-6
    )


def test_l1_of_rows_that_say_nothing() -> None:
    assert l1.decode(DecoderInputs(np.zeros((3, 40)), np.ones(3), N0, N1)) == pytest.approx(1 / N1)


def test_lstsq_has_the_least_norm() -> None:
    H = rows(15)
    assert lstsq.decode(DecoderInputs(H, H @ V, 0, 0)) == pytest.approx(np.linalg.pinv(H) @ H @ V)


@pytest.mark.parametrize(("m", "near", "noise"), [(10, None, 0), (25, 0.1, 1e-3), (25, None, 0.05), (10, 0.1, 10)])
def test_l1_is_what_an_interior_point_method_finds(m: int, near: float | None, noise: float) -> None:
    # Noisy enough for a dense solution, whose entries lie everywhere about the threshold.
    exact, _ = world(40, 4, m, 0, near)
    evidence = DecoderInputs(exact.rows, exact.gaps + np.random.default_rng(1).laplace(0, noise, m), 4, 36)
    v, reference = l1.decode(evidence), by_cvxpy(evidence, CLARABEL)
    unit = np.abs(reference).max()
    assert v / unit == pytest.approx(reference / unit, abs=1e-6)


def test_l1_is_what_a_first_order_method_finds() -> None:
    exact, _ = world(300, 30, 120, 0, 0.1)
    evidence = DecoderInputs(exact.rows, exact.gaps + np.random.default_rng(1).laplace(0, 1e-3, 120), 30, 270)
    v, reference = l1.decode(evidence), by_cvxpy(evidence, SCS)
    assert evidence.rows @ v == pytest.approx(evidence.gaps, abs=1e-9)
    assert norm_of_s(v, 270) == pytest.approx(norm_of_s(reference, 270), rel=1e-4)


@settings(max_examples=12, deadline=None)
@given(data=st.data(), n=st.integers(3, 8))
def test_l1_is_least_whatever_the_rows(data: st.DataObject, n: int) -> None:
    # Few different scores: ties, repeated and dependent rows, and more than one optimum.
    m = data.draw(st.integers(1, n))
    score = st.sampled_from([0, 0.25, 0.5, 1])
    H = np.array(data.draw(st.lists(score, min_size=m * n, max_size=m * n)), float).reshape(m, n)
    z = np.arange(n) < data.draw(st.integers(1, n - 1))
    evidence = DecoderInputs(H, H[:, ~z].mean(axis=1) - H[:, z].mean(axis=1), int(z.sum()), int((~z).sum()))
    v = l1.decode(evidence)
    assert H @ v == pytest.approx(evidence.gaps, abs=1e-6)
    reference = by_cvxpy(evidence, {"solver": "CLARABEL"})
    assert norm_of_s(v, evidence.n1) <= norm_of_s(reference, evidence.n1) + 1e-5


def test_l1_without_a_proof_still_explains_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence, _ = world(40, 4, 20, 0)
    monkeypatch.setattr(l1, "STEPS_MAX", 10)
    assert evidence.rows @ l1.decode(evidence) == pytest.approx(evidence.gaps, abs=1e-9)


def test_no_proof_is_given_of_what_is_not_so() -> None:
    for twin in ("wrong signs", "too small a support", "not least"):
        # The rows add up the first two of three entries, and the third by itself: z = (t, 1 - t, 1) are optimal.
        equations = affine.solutions(np.array([[0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.array([1.0, 1.0]))
        best, subgradient = np.array([0.0, 1, 1]), np.array([0.5, 1, 1])
        proved = l1._proved(equations, best, subgradient)
        assert proved is not None
        assert proved == pytest.approx(best)
        z, g = {
            "wrong signs": (np.array([0.0, -1, 1]), np.array([0.5, -1, 1])),
            "too small a support": (np.array([0.0, 1, 0]), subgradient),
            "not least": (np.array([2.0, 0, 1]), np.array([1.0, 1, 1])),
        }[twin]
        assert l1._proved(equations, z, g) is None


def test_a_hundred_are_found_from_models_near_h0() -> None:
    for decoder, m in (("box", 35), ("omp", 40), ("l1", 60)):
        for seed in range(6):
            evidence, z = world(100, 10, m, seed, near=0.1)
            assert (disadvantaged(EXACT[decoder](evidence), evidence) == z).all()


@pytest.mark.parametrize(
    ("decoder", "m"),
    [("omp", 400), *(pytest.param(*one, marks=pytest.mark.check) for one in (("box", 300), ("l1", 450)))],
)
def test_a_thousand_are_found_from_models_near_h0(decoder: str, m: int) -> None:
    evidence, z = world(1000, 104, m, 0, near=0.1)
    assert (disadvantaged(EXACT[decoder](evidence), evidence) == z).all()


def test_box_finds_groups_where_its_relaxation_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> int:
        trials = [world(60, 6, 15, seed) for seed in range(20)]
        return sum(bool((disadvantaged(box.decode(evidence), evidence) == z).all()) for evidence, z in trials)

    both = found()
    monkeypatch.setattr(box, "_search", lambda *_: None)
    assert found() < both


@pytest.mark.parametrize("decoder", ["box", "omp"])
def test_what_is_found_replays_or_nothing_is_claimed(decoder: str) -> None:
    # A third of the groups of a small world, with too few rows for certainty.
    H = np.random.default_rng(0).uniform(0, 1, (2, 7))
    for chosen in itertools.islice(itertools.combinations(range(7), 3), 0, None, 3):
        z = np.isin(np.arange(7), chosen)
        evidence = DecoderInputs(H, H[:, ~z].mean(axis=1) - H[:, z].mean(axis=1), 3, 4)
        v = EXACT[decoder](evidence)
        group = disadvantaged(v, evidence)
        claimed = np.isclose(np.abs(v - 1 / 4), np.where(group, 1 / 3 + 1 / 4, 0)).all() and group.sum() == 3
        if claimed:
            assert H @ v == pytest.approx(evidence.gaps, abs=1e-9)


def test_box_stays_in_the_box() -> None:
    for m, scale in ((10, 0.1), (39, 1e6), (60, 0.1)):
        H = rows(m)
        gaps = H @ V + np.random.default_rng(1).normal(0, scale, m)
        z = (1 / N1 - box.decode(DecoderInputs(H, gaps, N0, N1))) / (1 / N0 + 1 / N1)
        assert z.min() >= -1e-12
        assert z.max() <= 1 + 1e-12


@pytest.mark.parametrize("m", [10, 60])
def test_the_equations_of_a_size_are_least_squares_among_that_size(m: int) -> None:
    H, eta = rows(m), np.random.default_rng(1).normal(5, 1, m)
    equations = affine.solutions_of_size(H, eta, N0)
    assert equations.basis @ equations.basis.T == pytest.approx(np.eye(len(equations.basis)))
    z = equations.least_norm()
    assert z.sum() == pytest.approx(N0)
    # Stationary: no change that keeps the sum brings the answers nearer.
    slope = H.T @ (H @ z - eta)
    assert slope - slope.mean() == pytest.approx(np.zeros(V.size), abs=1e-9)
    assert equations.nearest(z) == pytest.approx(z)


@pytest.mark.parametrize("m", [3, 20])
def test_dependent_rows_have_the_same_solutions_as_independent_ones(m: int) -> None:
    H, eta = rows(m), np.arange(1.0, m + 1)
    once = affine.solutions(H, eta)
    twice = affine.solutions(np.vstack([H, H[:2]]), np.append(eta, eta[:2]))
    assert len(twice.basis) == len(once.basis) == m
    assert twice.least_norm() == pytest.approx(once.least_norm())


finite = st.floats(-1e6, 1e6) | st.sampled_from([1e300, -1e300, sys.float_info.max, 5e-324, 0.0])


@settings(max_examples=50, deadline=None)
@given(
    data=st.data(),
    shape=st.tuples(st.integers(1, 8), st.integers(2, 8)),
    decoder=st.sampled_from(SPARSE),
)
def test_no_answer_breaks_a_decoder(data: st.DataObject, shape: tuple[int, int], decoder: str) -> None:
    m, n = shape
    H = np.array(data.draw(st.lists(st.floats(0, 1), min_size=m * n, max_size=m * n))).reshape(m, n)
    gaps = np.array(data.draw(st.lists(finite, min_size=m, max_size=m)))
    n0 = data.draw(st.integers(1, n - 1))
    v = EXACT[decoder](DecoderInputs(H, gaps, n0, n - n0))
    assert v.shape == (n,)
    assert np.isfinite(v).all()


def test_rows_next_to_nothing_and_answers_beyond_everything() -> None:
    v = l1.decode(DecoderInputs(np.array([[0.0, 3.6e-93]]), np.array([1e300]), 1, 1))
    assert np.isfinite(v).all()


def test_of_people_who_are_equally_likely_the_first_are_taken() -> None:
    """So that a guess is the same on every processor: how a partition orders equal numbers is its own."""
    for n, values in ((5, 2), (300, 7), (5000, 2), (300, 10**9)):
        z = np.random.default_rng(n + values).integers(0, values, n).astype(np.float64)
        for size in {1, n // 3, n}:
            best = np.argsort(-z, kind="stable")[:size]
            assert np.flatnonzero(affine.largest(z, size)).tolist() == sorted(best)
