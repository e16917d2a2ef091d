"""What the operating system drew is kept, and drawn again from there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from compliance.answers.audits import game_case, values_of
from compliance.ledger.accountant import Budget
from compliance.mechanisms import MECHANISMS
from compliance.noise.draw_log import DrawLog
from compliance.noise.sampling import Noise
from compliance.records.people import Records

LABELS = np.array([1, 1, 1, 0, 0, 1, 1, 0], np.uint8)
PROTECTED = np.array([1, 0, 1, 1, 0, 0, 1, 0], np.uint8)
PREDICTIONS = np.linspace(0, 1, 16).reshape(2, 8)


def answer(log: DrawLog | None, mechanism: str, request_id: str = "r") -> list[float]:
    records = Records(LABELS, PROTECTED, ("sp",))
    case = game_case("deal", records, MECHANISMS[mechanism], Budget(1.0, 1e-6), 1e-6, 9, None, draws=log)
    return values_of(case.answer("developer", request_id, b"digest", "sp", PREDICTIONS, 1.0)).tolist()  # type: ignore[no-any-return]


def test_the_same_log_gives_the_same_answer(tmp_path: Path) -> None:
    for mechanism in ("laplace", "gaussian", "conceal", "counts", "cube"):
        path = tmp_path / f"{mechanism}.draws.jsonl"
        first = answer(DrawLog(path), mechanism)
        kept = path.read_bytes()
        assert answer(DrawLog(path), mechanism) == first
        assert path.read_bytes() == kept
        # Of so few people, counts often give the same end of what is possible: with a chance of about a third. Other
        # fresh noise is the same with one below 2^-20, since its grid has as many steps a scale.
        others = (tmp_path / f"{mechanism} {other}" for other in range(20))
        assert any(answer(DrawLog(other), mechanism) != first for other in others)


def every_draw(noise: Noise) -> list[list[object]]:
    values = np.array([0.25, -3.0, 7.5])
    return [
        noise.laplace(values, 1.0, 2.0**-20).tolist(),
        noise.gaussian(values, 1.0, 2.0**-20).tolist(),
        noise.cauchy(values, 1.0, 2.0**-20).tolist(),
        noise.cube(values, 1.0, 2.0**-20).tolist(),
        noise.bernoulli(0.5, 50).tolist(),
        noise.bernoulli_exp(np.full(50, 0.7)).tolist(),
        noise.integers(1 << 40, 5).tolist(),
        noise.permutation(30).tolist(),
    ]


def test_every_law_is_drawn_again_in_its_own_type(tmp_path: Path) -> None:
    path = tmp_path / "draws"
    first = every_draw(DrawLog(path).noise("deal", "r"))
    assert every_draw(DrawLog(path).noise("deal", "r")) == first
    again = DrawLog(path).noise("deal", "r")
    again.laplace(np.zeros(3), 1.0, 1.0)
    again.gaussian(np.zeros(3), 1.0, 1.0)
    again.cauchy(np.zeros(3), 1.0, 1.0)
    again.cube(np.zeros(3), 1.0, 1.0)
    assert again.bernoulli(0.5, 50).dtype == np.bool_
    assert [json.loads(line)["draw"] for line in path.read_text().splitlines()] == list(range(8))


def test_each_request_of_each_deal_has_draws_of_its_own(tmp_path: Path) -> None:
    log = DrawLog(tmp_path / "draws")
    drawn = [log.noise(*of).integers(1 << 60, 2).tolist() for of in (("a", "r"), ("a", "s"), ("b", "r"))]
    assert len({tuple(values) for values in drawn}) == 3


def test_another_games_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "draws"
    DrawLog(path).noise("deal", "r").permutation(4)
    with pytest.raises(OSError, match="permutation where this game draws integers"):
        DrawLog(path).noise("deal", "r").integers(5, 4)


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    for text in ("{", "[]\n", '{"deal": "d"}\n'):
        path = tmp_path / "draws"
        path.write_text(text)
        with pytest.raises(OSError, match="no log of draws"):
            DrawLog(path)
