import subprocess
import sys

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from developer.decode import DECODERS, Evidence, l1, lstsq

N0, N1 = 4, 36
V = np.where(np.arange(N0 + N1) < N0, -1 / N0, 1 / N1)


def rows(m: int, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).uniform(0, 1, (m, V.size))


def norm_of_s(v: NDArray[np.float64]) -> float:
    return float(np.abs(1 / N1 - v).sum())


def test_l1_finds_v_from_half_as_many_rows() -> None:
    H = rows(20)
    assert l1.decode(Evidence(H, H @ V, N0, N1)) == pytest.approx(V, abs=1e-6)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("m", [40, 60])
def test_full_rank_determines_v(decoder: str, m: int) -> None:
    H = rows(m)
    assert DECODERS[decoder](Evidence(H, H @ V, N0, N1)) == pytest.approx(V, abs=1e-9)


def test_both_decoders_are_least_squares_where_noise_leaves_no_solution() -> None:
    H = rows(60)
    gaps = H @ V + np.random.default_rng(1).normal(0, 0.1, 60)
    best = np.linalg.lstsq(H, gaps)[0]
    assert l1.decode(Evidence(H, gaps, N0, N1)) == pytest.approx(best)
    assert lstsq.decode(Evidence(H, gaps, 0, 0)) == pytest.approx(best)


@pytest.mark.parametrize("noise", [0, 0.1, 1e6])
def test_l1_explains_the_answers_with_the_least_norm(noise: float) -> None:
    H = rows(15)
    gaps = H @ V + np.random.default_rng(1).normal(0, noise, 15)
    v = l1.decode(Evidence(H, gaps, N0, N1))
    assert H @ v == pytest.approx(gaps, rel=1e-6, abs=1e-6 * max(noise, 1))
    # Another solution of the same equations: the one of least Euclidean norm.
    other = 1 / N1 - np.linalg.lstsq(H, H.sum(axis=1) / N1 - gaps)[0]
    assert norm_of_s(v) <= norm_of_s(other) * (1 + 1e-6)


def test_l1_takes_rows_that_contradict_one_another() -> None:
    H = np.repeat(rows(10), 2, axis=0)
    gaps = H @ V + np.tile([0.1, -0.1], 10)
    assert l1.decode(Evidence(H, gaps, N0, N1)) == pytest.approx(
        l1.decode(Evidence(H[::2], H[::2] @ V, N0, N1)), abs=1e-6
    )


def test_l1_of_rows_that_say_nothing() -> None:
    assert l1.decode(Evidence(np.zeros((3, 40)), np.ones(3), N0, N1)) == pytest.approx(1 / N1)


def test_lstsq_has_the_least_norm() -> None:
    H = rows(15)
    assert lstsq.decode(Evidence(H, H @ V, 0, 0)) == pytest.approx(np.linalg.pinv(H) @ H @ V)


def test_the_two_solvers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    # Noisy enough for a dense solution, whose entries lie everywhere about the threshold.
    H = rows(25)
    gaps = H @ V + np.random.default_rng(1).laplace(0, 0.05, 25)
    interior_point = l1.decode(Evidence(H, gaps, N0, N1))
    monkeypatch.setattr(l1, "SMALL", 0)
    first_order = l1.decode(Evidence(H, gaps, N0, N1))
    assert first_order == pytest.approx(interior_point, abs=1e-3)


@pytest.mark.parametrize("outcome", ["raises", "nothing"])
def test_a_failing_solver_leaves_least_squares(monkeypatch: pytest.MonkeyPatch, outcome: str) -> None:
    def solve(self: cp.Problem, **settings: object) -> None:
        if outcome == "raises":
            raise cp.error.SolverError

    monkeypatch.setattr(cp.Problem, "solve", solve)
    H = rows(15)
    s = np.linalg.pinv(H) @ (H.sum(axis=1) / N1 - H @ V)
    assert l1.decode(Evidence(H, H @ V, N0, N1)) == pytest.approx(1 / N1 - s)


finite = st.floats(-1e6, 1e6)


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    shape=st.tuples(st.integers(1, 8), st.integers(2, 8)),
    decoder=st.sampled_from(sorted(DECODERS)),
)
def test_no_answer_breaks_a_decoder(data: st.DataObject, shape: tuple[int, int], decoder: str) -> None:
    m, n = shape
    H = np.array(data.draw(st.lists(st.floats(0, 1), min_size=m * n, max_size=m * n))).reshape(m, n)
    gaps = np.array(data.draw(st.lists(finite, min_size=m, max_size=m)))
    n0 = data.draw(st.integers(1, n - 1))
    v = DECODERS[decoder](Evidence(H, gaps, n0, n - n0))
    assert v.shape == (n,)
    assert np.isfinite(v).all()


def test_solvers_load_only_when_needed() -> None:
    script = "import sys, developer.reveal; assert not {'cvxpy', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
