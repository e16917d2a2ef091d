"""The command ``fairwall plan mechanism``, without its command line."""

import json
import math

import pytest
from rich.console import Console

from sim.cli.plan.mechanism import as_text, as_values
from sim.deployment.recommendation import RecommendError, recommend


def printed(*batch: float, metric: str = "sp", reveal_max: float = 1.0) -> list[str]:
    n, queries, epsilon, delta = batch
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(as_text(recommend(metric, int(n), int(queries), epsilon, delta, 0.05, 0.5, reveal_max)))
        return console.export_text().splitlines()


def test_the_table_fits_and_names_the_choice() -> None:
    lines = printed(1000, 25, 5.0, 0.0)
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert "recommended: randomized-response" in lines
    assert any(line.split()[:1] == ["conceal"] for line in lines)
    assert not any("without looking" in line for line in lines)


def test_where_attributes_are_published_one_line_says_so() -> None:
    for epsilon, one_in in ((5.0, "149"), (10.0, "22,027")):
        batch = (1000, 25, epsilon, 0.0)
        assert f"It publishes A but for 1 person in {one_in}; later batches are then free." in printed(*batch)
        found = as_values(recommend("sp", 1000, 25, epsilon, 0.0, 0.05, 0.5, 1.0))
        assert found["published_but_for_one_in"] == pytest.approx(1 + math.exp(epsilon))
    assert not any("publishes" in line for line in printed(1000, 25, 1.0, 0.0))
    assert as_values(recommend("sp", 1000, 25, 1.0, 0.0, 0.05, 0.5))["published_but_for_one_in"] is None


def test_what_is_revealed_is_said_in_plain_words() -> None:
    text = " ".join(" ".join(printed(1000, 25, 5.0, 0.0, reveal_max=0.6)).split())
    found = recommend("sp", 1000, 25, 5.0, 0.0, 0.05, 0.5)
    assert found.chosen != "randomized-response"
    assert found.revealed <= found.reveal_max == 0.6
    assert "guessing gives 50%, and several batches tell more. About one person aimed at, the limit" in text
    assert "of one batch is e^(2 eps)/(1+e^(2 eps)), 100% at epsilon 5" in text
    assert "No mechanism stays within" not in text
    # Few people and a large epsilon: nothing does.
    few = " ".join(" ".join(printed(20, 1, 5.0, 0.0, reveal_max=0.55)).split())
    assert "No mechanism stays within 55%: this one gives away least." in few
    values = as_values(recommend("sp", 1000, 25, 1.0, 0.0, 0.05, 0.5))
    of_response = next(row for row in values["mechanisms"] if row["mechanism"] == "randomized-response")
    assert of_response["revealed"] == pytest.approx(math.e / (1 + math.e))


def test_where_the_midpoint_is_as_good_it_says_so() -> None:
    lines = printed(100, 400, 1.0, 1e-5)
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert any("Answering 0 without looking is as good as every mechanism" in line for line in lines)
    assert any("…" in line for line in lines) is False


def test_json() -> None:
    answer = json.loads(json.dumps(as_values(recommend("di", 500, 10, 2.0, 0.0, 0.1, 0.4)), allow_nan=False))
    assert answer["recommended"].startswith("counts")
    assert answer["shares"] == [0.1, 0.4]
    assert {row["mechanism"] for row in answer["mechanisms"]} == {
        "counts", "counts shrunk", "randomized-response", "midpoint"
    }  # fmt: skip
    assert answer["midpoint_wins"] is False


def test_a_policy_s_least_size_of_groups_counts() -> None:
    errors = []
    for least in (1, 100):
        values = as_values(recommend("sp", 1000, 1, 0.5, 0.0, 0.1, 0.5, minimum_group=least))
        assert values["minimum_group"] == least
        (row,) = [row for row in values["mechanisms"] if row["mechanism"] == "laplace"]
        errors.append(row["median_error"])
    assert errors[1] < errors[0] / 10


def test_bad_options_are_named() -> None:
    for option, batch in [
        ("--metric", ("x", 10, 1, 1.0, 0.0, 0.05, 0.5)),
        ("--reveal-max", ("sp", 10, 1, 1.0, 0.0, 0.05, 0.5, 0.4)),
        ("--people", ("sp", 2, 1, 1.0, 0.0, 0.05, 0.5)),
        ("--models", ("sp", 10, 0, 1.0, 0.0, 0.05, 0.5)),
        ("--epsilon", ("sp", 10, 1, 0.0, 0.0, 0.05, 0.5)),
        ("--epsilon", ("sp", 10, 1, float("inf"), 0.0, 0.05, 0.5)),
        ("--delta", ("sp", 10, 1, 1.0, 1.0, 0.05, 0.5)),
        ("--share", ("sp", 10, 1, 1.0, 0.0, 0.5, 0.2)),
        ("--minimum-group", ("sp", 10, 1, 1.0, 0.0, 0.05, 0.5, 0.6, 5)),
    ]:
        with pytest.raises(RecommendError, match=option):
            recommend(*batch)
