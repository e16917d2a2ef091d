"""A policy is read whole or refused in one line, and what must look at protected attributes is checked at load."""

from __future__ import annotations

import copy
import itertools
import logging
import math
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from compliance.answers.exposure import BudgetExposure
from compliance.deployment import answer_value
from compliance.deployment.policy import loading, reading
from compliance.deployment.policy.loading import load_release
from compliance.deployment.policy.schema import (
    DataSection,
    DeploymentSection,
    LawSection,
    Policy,
    PolicyError,
    PolicyRelease,
    PolicyTable,
    SealedSection,
)
from compliance.ledger.accountant import Budget, Rule
from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.cells import CellsMechanism
from compliance.mechanisms.mechanism import candidates
from compliance.mechanisms.recommended import Recommended
from compliance.records.groups import NO_LABEL, Grouped
from compliance.records.people import Records
from compliance.records.rows import FileRows
from fairwall.errors import DataError
from fairwall.laws.metrics.metric import METRICS
from fairwall.laws.privacy.exposure import Limit

EXAMPLE = Path(__file__).parents[3] / "docs" / "example"
Values = dict[str, Any]

PEOPLE = [("a", 1)] * 6 + [("a", 0)] * 6 + [("b", 1)] * 4 + [("b", 0)] * 8
"""Among the 10 with a good label only 4 are in group b."""


def load(policy: Policy) -> tuple[Records, FileRows, Grouped | None]:
    """Read a data set with one protected column."""
    records, rows, grouped = loading.load(policy)
    (only,) = records.values()
    return only, rows, grouped


@pytest.fixture
def values() -> Values:
    example = tomllib.loads((EXAMPLE / "policy.toml").read_text())
    return example | {"data": {key: value for key, value in example["data"].items() if key not in ("id", "public")}}


def read(path: Path) -> Policy:
    """The only data set's policy."""
    (policy,) = reading.read(path).datasets.values()
    return policy


def written(folder: Path, values: Values) -> Path:
    path = folder / "policy.toml"
    path.write_text(tomli_w.dumps(values))
    return path


def refused(folder: Path, values: Values) -> str:
    """Why a policy is refused, without its file's name."""
    path = written(folder, values)
    with pytest.raises(PolicyError) as caught:
        read(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


def with_people(folder: Path, values: Values, people: list[tuple[str, int]], minimum: int = 2) -> Policy:
    (folder / "loans.csv").write_text("group,repaid\n" + "".join(f"{group},{label}\n" for group, label in people))
    values["data"]["minimum_group"] = minimum
    return read(written(folder, values))


def test_the_example_is_a_policy_and_its_paths_start_from_its_folder() -> None:
    policy = read(EXAMPLE / "policy.toml")
    assert policy.data_name == policy.deployment.name == "loans"
    assert policy.data.source == EXAMPLE / "loans.csv"
    assert policy.deployment.credentials == EXAMPLE / "certificates" / "compliance"
    assert list(policy.developers) == ["alice", "bob"]


def test_every_key_is_documented() -> None:
    text = (EXAMPLE / "policy.toml").read_text() + (EXAMPLE.parent / "serving.md").read_text()
    text += (EXAMPLE.parent / "tables.md").read_text() + (EXAMPLE.parent / "law.md").read_text()
    text += (EXAMPLE.parent / "sealed.md").read_text()
    several = ("developers", "release", "tables", "sealed", "law")
    sections = [field.annotation for name, field in Policy.model_fields.items() if name not in several]
    sections += [LawSection, PolicyRelease, SealedSection, PolicyTable]
    for key in (*Policy.model_fields, *(key for section in sections for key in section.model_fields)):  # type: ignore[union-attr]
        assert re.search(rf"\b{key}\b", text), key


def test_an_absolute_path_stays_as_it_is(tmp_path: Path, values: Values) -> None:
    values["data"]["source"] = "/data/people.parquet"
    assert read(written(tmp_path, values)).data.source == Path("/data/people.parquet")


SPOILT: dict[str, tuple[Callable[[Values], object], str]] = {
    "no section": (lambda values: values.pop("budget"), "budget: is missing"),
    "no key": (lambda values: values["data"].pop("minimum_group"), "data.minimum_group: is missing"),
    "a typo": (
        lambda values: values["audit"].update(querys_max=3),
        "audit.querys_max: unknown key; did you mean queries_max?",
    ),
    "a developer's typo": (
        lambda values: values["developers"]["alice"].update(epsilom=3),
        "developers.alice.epsilom: unknown key; did you mean epsilon?",
    ),
    "an unknown metric": (
        lambda values: values["audit"].update(metrics=["overall_acuracy"]),
        f"audit.metrics: must be one of {', '.join(METRICS)}, not 'overall_acuracy'; did you mean overall_accuracy?",
    ),
    "an unknown mechanism": (lambda values: values["audit"].update(mechanism="x"), "audit.mechanism: must be one of "),
    "no protection": (lambda values: values["audit"].update(mechanism="exact"), "audit.mechanism: must be one of "),
    "no limit": (lambda values: values["budget"].update(epsilon=float("inf")), "budget.epsilon: must "),
    "a delta in words": (lambda values: values["budget"].update(delta="1e-6"), "budget.delta: must be a valid number"),
    "a delta of 1": (lambda values: values["budget"].update(delta=1.0), "budget.delta: must be less than 1"),
    "an unknown rule": (lambda values: values["budget"].update(rule="sum"), "budget.rule: must "),
    "a share above all": (
        lambda values: values["developers"]["bob"].update(epsilon=4.5),
        "developers.bob.epsilon: must be at most budget.epsilon, not 4.5",
    ),
    "a batch above all": (
        lambda values: values["audit"].update(epsilon_max=5.0),
        "audit.epsilon_max: must be at most budget.epsilon, not 5",
    ),
    "less than nothing": (
        lambda values: values["audit"].update(epsilon_min=1e-13),
        "audit.epsilon_min: must be greater than or equal to 0.000000000001",
    ),
    "a least batch above the largest": (
        lambda values: values["audit"].update(epsilon_min=1.5, epsilon_max=1.0),
        "audit.epsilon_min: must be at most what a batch may spend, not 1.5",
    ),
    "no calls": (
        lambda values: values["developers"]["bob"].update(calls_a_day=0),
        "developers.bob.calls_a_day: must be greater than or equal to 1",
    ),
    "a delta above all": (
        lambda values: values["audit"].update(delta=1e-6),
        "audit.delta: must be at most budget.delta",
    ),
    "a mechanism that needs a delta": (
        lambda values: values["audit"].update(mechanism="gaussian"),
        "audit.mechanism: gaussian does not answer metric sp: ",
    ),
    "shares the wrong way round": (
        lambda values: values["audit"].update(shares=[0.5, 0.1]),
        "audit.shares: must be two numbers above 0 and below 1, the smaller first, not [0.5, 0.1]",
    ),
    "a limit below a guess": (
        lambda values: values["audit"].update(reveal_max=0.4),
        "audit.reveal_max: must be greater than or equal to 0.5, not 0.4",
    ),
    "a limit above everybody": (
        lambda values: values["audit"].update(reveal_max=1.2),
        "audit.reveal_max: must be less than or equal to 1, not 1.2",
    ),
    "a limit that is no number": (
        lambda values: values["audit"].update(reveal_max="x"),
        "audit.reveal_max: must be a valid number, not 'x'",
    ),
    "a bounding without a proof": (
        lambda values: values["audit"].update(mechanism="cauchy", bounding="truncate"),
        "audit.bounding: truncated noise is proved private for mechanism laplace alone",
    ),
    "nobody": (lambda values: values.update(developers={}), "developers: must "),
    "a strange name": (
        lambda values: values["developers"].update({"A/b": {"epsilon": 1.0}}),
        "developers.A/b: must be",
    ),
    "a strange deployment": (lambda values: values["deployment"].update(name="Loans."), "deployment.name: must be 1"),
    "telemetry to nowhere": (
        lambda values: values["deployment"].update(telemetry="collector:4318"),
        "deployment.telemetry: must be http://host:port or https://host:port",
    ),
    "no port": (lambda values: values["deployment"].update(listen="localhost"), "deployment.listen: must be host:port"),
    "a seal beside the ledger": (
        lambda values: values["deployment"].update(seal="ledger/head"),
        "deployment.seal: must lie outside the ledger's folder",
    ),
    "no group at all": (lambda values: values["data"].update(minimum_group=0), "data.minimum_group: must be greater"),
}


RELEASE: Values = {
    "source": "training.csv",
    "columns": {"region": ["north", "east", "south", "west"], "group": ["a", "b"]},
    "protocol": "grr",
    "epsilon": 4.0,
}


def releasing(**changes: object) -> Callable[[Values], object]:
    """Add a section release, with changes; None takes a key out."""
    section = {key: value for key, value in {**RELEASE, **changes}.items() if value is not None}
    return lambda values: values.update(release=section)


def with_share(share: float) -> Callable[[Values], object]:
    return lambda values: values["developers"]["bob"].update(release=share)


SPOILT |= {
    "a release without a column": (releasing(columns={}), "release.columns: must "),
    "a domain of one value": (
        releasing(columns={"group": ["a"]}),
        "release.columns.group: must be 2 to 256 different values, not ['a']",
    ),
    "a value twice": (
        releasing(columns={"group": ["a", "b", "a"]}),
        "release.columns.group: must be 2 to 256 different values",
    ),
    "a domain of too many values": (
        releasing(columns={"group": list(map(str, range(257)))}),
        "release.columns.group: must be 2 to 256 different values",
    ),
    "a domain of numbers": (releasing(columns={"group": [0, 1]}), "release.columns.group: must be a valid string"),
    "an unknown protocol": (releasing(protocol="x"), "release.protocol: must be one of grr, blh, olh, "),
    "no protocol at all": (releasing(protocol="clean"), "release.protocol: must be one of grr, blh, olh, "),
    "a release for nothing": (releasing(epsilon=0.0), "release.epsilon: must be greater than 0, not 0.0"),
    "a release without limit": (releasing(epsilon=float("inf")), "release.epsilon: must "),
    "an unknown split": (releasing(split="half"), "release.split: must "),
    "a split by no weights": (releasing(split="weights"), 'release.weights: go with split = "weights"'),
    "weights that nobody asked for": (releasing(weights=[0.5, 0.5]), 'release.weights: go with split = "weights"'),
    "weights that do not sum to 1": (
        releasing(split="weights", weights=[0.5, 0.4]),
        "release.weights: weights must sum to 1, these sum to 0.9",
    ),
    "a weight below 0": (releasing(split="weights", weights=[1.5, -0.5]), "release.weights: weights must be finite"),
    "a weight too few": (releasing(split="weights", weights=[1.0]), "release.weights: 2 sensitive attributes need"),
    "one name for two sets of people": (releasing(name="loans"), "release.name: must be another than the data set's"),
    "a share of no release": (with_share(1.0), "developers.bob.release: there is no section release"),
    "a share below 0": (with_share(-1.0), "developers.bob.release: must be greater than or equal to 0"),
    "a share above all that is released": (
        lambda values: (releasing()(values), with_share(4.5)(values)),
        "developers.bob.release: must be at most release.epsilon, not 4.5",
    ),
}


def test_a_policy_that_cannot_be_served_is_refused_with_its_key(tmp_path: Path, values: Values) -> None:
    for what, (spoil, why) in SPOILT.items():
        spoilt = copy.deepcopy(values)
        spoil(spoilt)
        assert refused(tmp_path, spoilt).startswith(why), what


def test_metrics_may_have_their_other_names(tmp_path: Path, values: Values) -> None:
    values["audit"]["metrics"] = ["demographic_parity", "equal_opportunity_difference"]
    assert read(written(tmp_path, values)).audit.metrics == ("sp", "abs_eo")


def test_a_mechanism_that_needs_a_delta_is_served_with_one(tmp_path: Path, values: Values) -> None:
    values["audit"].update(mechanism="gaussian", delta=1e-7)
    values["budget"].update(delta=1e-6, rule="zcdp")
    for share in values["developers"].values():
        share["delta"] = 1e-6
    policy = read(written(tmp_path, values))
    assert policy.mechanism.name == "gaussian"
    assert policy.epsilon_max == 2.0


def test_recommended_is_told_how_much_it_may_reveal(tmp_path: Path, values: Values) -> None:
    for told, limit in (({}, 0.6), ({"reveal_max": 1}, 1.0), ({"reveal_max": 0.55}, 0.55)):
        values["audit"].update(mechanism="recommended", **told)
        policy = read(written(tmp_path, values))
        assert policy.mechanism == Recommended(policy.shares, reveal_max=limit)
    # A scenario's, and what old runs recorded, has no limit.
    assert MECHANISMS["recommended"] == Recommended(reveal_max=1.0)


def test_a_policy_may_want_guarantees(tmp_path: Path, values: Values) -> None:
    values["audit"].update(mechanism="recommended", promise="guaranteed")
    policy = read(written(tmp_path, values))
    assert policy.mechanism == Recommended(policy.shares, reveal_max=0.6, promise="guaranteed")


@pytest.mark.check
@pytest.mark.parametrize(("minimum", "kept"), [(20, True), (1, False)])
def test_a_limit_that_nothing_keeps_for_so_small_a_group_is_warned_of(
    tmp_path: Path, values: Values, caplog: pytest.LogCaptureFixture, minimum: int, kept: bool
) -> None:
    values["audit"].update(metrics=["sp"], queries_max=2)
    policy = with_people(tmp_path, values, [("ab"[i < 60], i % 2) for i in range(400)], minimum)
    with caplog.at_level(logging.WARNING):
        records = load(policy)[0]
        answer_value.say(policy, records, list(answer_value.worths(policy, records)))
    lines = [record.getMessage() for record in caplog.records if "reveal_max" in record.getMessage()]
    if kept:
        assert lines == []
    else:
        number = r"\d\d(\.\d)?%"
        told = rf"loans: sp of 1 gives away a balanced accuracy of {number}, groups of 1: audit.reveal_max is not kept"
        assert re.fullmatch(told, lines[0])


def test_what_is_revealed_is_reckoned_for_the_smallest_group_of_the_policy(tmp_path: Path, values: Values) -> None:
    """And not for the range of shares that mechanisms are tuned for, however large that says groups are."""
    values["audit"].update(shares=[0.3, 0.5], mechanism="cells")
    policy = read(written(tmp_path, values))
    assert isinstance(policy.mechanism, CellsMechanism)
    assert policy.mechanism.limit == Limit(0.6, policy.shares)
    assert policy.shares.allowed(3000) == (values["data"]["minimum_group"], 1500)


def budget_of(folder: Path, values: Values, least: int) -> tuple[Policy, BudgetExposure]:
    values["audit"].update(metrics=["sp"])
    policy = with_people(folder, values, [("ab"[i < 60], i % 2) for i in range(400)], least)
    return policy, answer_value.budget_exposure(policy, load(policy)[0])


def test_a_budget_that_reveals_more_than_the_policy_says_is_refused_with_one_that_keeps_it(
    tmp_path: Path, values: Values
) -> None:
    values["audit"]["reveal_total"] = 0.65
    policy, _ = budget_of(tmp_path, values, 20)
    with pytest.raises(PolicyError) as caught:
        answer_value.check_revealed(policy, load(policy)[0])
    told = re.fullmatch(
        r"loans: audit\.reveal_total: a budget of epsilon 4 gives away a balanced accuracy of 7\d(\.\d)?%; "
        r"budget\.epsilon = ([\d.]+) keeps it, and so may a larger data\.minimum_group; "
        r"--even-if-revealing serves all the same",
        str(caught.value),
    )
    assert told, caught.value
    kept = float(told[2])
    (warning,) = (line for level, line in answer_value.told(policy, load(policy)[0], []) if level == logging.WARNING)
    assert re.fullmatch(
        r"loans: a budget of epsilon 4 gives away a balanced accuracy of 7\d(\.\d)?%: audit.reveal_total is not kept",
        warning,
    )
    values["budget"]["epsilon"] = kept
    values["audit"].pop("epsilon_max")
    for share in values["developers"].values():
        share["epsilon"] = kept
    policy, total = budget_of(tmp_path, values, 20)
    assert total.together <= 0.65
    answer_value.check_revealed(policy, load(policy)[0])


def test_a_batch_that_reveals_more_than_the_policy_names_is_refused(tmp_path: Path, values: Values) -> None:
    """What a policy leaves out is warned of; what it says is kept, or nothing is served unless told to."""
    values["audit"].update(metrics=["sp"], queries_max=2, mechanism="counts")
    for named in (False, True):
        values["audit"].update({"reveal_max": 0.55} if named else {})
        policy = with_people(tmp_path, values, [("ab"[i < 60], i % 2) for i in range(400)], 1)
        records = load(policy)[0]
        if not named:
            answer_value.check_revealed(policy, records)
            continue
        with pytest.raises(
            PolicyError, match=r"audit\.reveal_max: sp of 1 at epsilon 2 gives .*; audit\.epsilon_max = 0"
        ):
            answer_value.check_revealed(policy, records)


@pytest.mark.check
def test_what_a_budget_reveals_is_told_of_each_share_and_of_all_together(tmp_path: Path, values: Values) -> None:
    total = budget_of(tmp_path, values, 20)[1]
    assert 0.5 < total.revealed["bob"] < total.revealed["alice"] < total.together < total.most
    assert list(total.kept) == [0.6, 0.7, 0.8]
    assert total.kept[0.6] < total.kept[0.7] < total.kept[0.8]
    _, of_more = budget_of(tmp_path, values, 60)
    assert of_more.together < total.together


@pytest.mark.check
def test_a_budget_is_reckoned_for_the_smallest_group_and_not_for_the_range_of_shares(
    tmp_path: Path, values: Values
) -> None:
    _, total = budget_of(tmp_path, values, 5)
    values["audit"]["shares"] = [0.4, 0.5]
    assert budget_of(tmp_path, values, 5)[1] == total


@pytest.mark.check
def test_the_page_says_what_the_example_s_budget_gives_away() -> None:
    policy = read(EXAMPLE / "policy.toml")
    told = "\n".join(
        line for _, line in answer_value.told(policy, load(policy)[0], []) if "budgets" in line or "who is who" in line
    )
    assert f"```text\n{told}\n```" in (EXAMPLE.parent / "serving.md").read_text()


@pytest.mark.check
def test_tables_and_releases_of_the_same_people_are_counted(tmp_path: Path, values: Values) -> None:
    values["audit"]["mechanism"] = "counts"
    alone = budget_of(tmp_path, values, 20)[1]
    values["data"]["groups"] = {"group": ["a", "b"]}
    with_tables = budget_of(tmp_path, values, 20)[1]
    assert alone.together < with_tables.together
    assert alone.most == with_tables.most
    values["release"] = {
        "source": "loans.csv", "protocol": "grr", "epsilon": 1.0, "columns": {"group": ["a", "b"]}
    }  # fmt: skip
    released = budget_of(tmp_path, values, 20)[1]
    assert with_tables.together < released.together
    assert with_tables.most < released.most
    values["release"]["source"] = "others.csv"
    assert budget_of(tmp_path, values, 20)[1] == with_tables


def test_where_no_attack_is_known_what_is_proved_is_told(tmp_path: Path, values: Values) -> None:
    values["audit"]["mechanism"] = "sample-and-aggregate"
    policy, total = budget_of(tmp_path, values, 20)
    assert math.isnan(total.together)
    assert total.kept == {}
    values["audit"]["reveal_total"] = 0.9
    with pytest.raises(PolicyError, match=r"gives away a balanced accuracy of 98\.\d%; what may keep it is"):
        answer_value.check_revealed(budget_of(tmp_path, values, 20)[0], load(policy)[0])


def test_a_rule_that_sells_more_than_epsilons_add_up_to_is_told_by_what_is_proved(
    tmp_path: Path, values: Values
) -> None:
    values["audit"].update(metrics=["sp"], mechanism="counts")
    values["budget"].update(delta=1e-6, rule="zcdp")
    _, total = budget_of(tmp_path, values, 20)
    assert math.isnan(total.together)
    assert total.most > 0.98


def with_rule(values: Values, mechanism: str, rule: str, delta: float, budget: float) -> Values:
    values["audit"].update(mechanism=mechanism, delta=delta, epsilon_max=0.9, metrics=["sp"])
    values["budget"].update(delta=budget, rule=rule)
    for share in values["developers"].values():
        share["delta"] = budget
    return values


UNAFFORDABLE = (
    ("propose-test-release", "zcdp", 1e-8, 1e-6),
    ("conceal-laplace", "zcdp", 1e-8, 1e-6),
    ("gaussian", "advanced", 6e-7, 1e-6),
    ("counts-gaussian", "advanced", 6e-7, 1e-6),
    ("recommended", "advanced", 6e-7, 1e-6),
    ("propose-test-release", "tight", 6e-7, 1e-6),
)


def test_a_policy_that_could_never_answer_is_refused(tmp_path: Path, values: Values) -> None:
    for mechanism, rule, delta, budget in UNAFFORDABLE:
        assert refused(tmp_path, with_rule(values, mechanism, rule, delta, budget)) == (
            f"budget.delta: {budget:g} never covers a batch of {mechanism} at audit.delta {delta:g} under "
            f'budget.rule "{rule}"'
        )


def test_a_policy_that_could_not_answer_a_second_developer_is_refused(tmp_path: Path, values: Values) -> None:
    # Two alike are composed at half of delta, two unlike ones at less.
    assert refused(tmp_path, with_rule(values, "propose-test-release", "tight", 2e-7, 1e-6)).startswith(
        "budget.delta: 1e-06 covers no two unlike batches: a batch of propose-test-release at audit.delta 2e-07 under"
    )


def test_a_developer_without_a_delta_is_not_left_to_find_out(tmp_path: Path, values: Values) -> None:
    del with_rule(values, "gaussian", "basic", 1e-7, 1e-6)["developers"]["bob"]["delta"]
    assert refused(tmp_path, values).startswith("developers.bob.delta: 0 never covers a batch of gaussian at audit.d")
    values["developers"]["bob"].update(delta=1e-6, epsilon=1e-13)
    assert refused(tmp_path, values) == "developers.bob.epsilon: must be at least 3e-12, not 1e-13"


def test_a_budget_of_just_two_batches_is_served(tmp_path: Path, values: Values) -> None:
    with_rule(values, "gaussian", "basic", 4e-7, 1e-6)
    assert read(written(tmp_path, values)).audit.delta == 4e-7
    values["developers"]["bob"]["epsilon"] = 3e-12  # the least one, and one at twice its epsilon
    assert read(written(tmp_path, values)).developers["bob"].epsilon == 3e-12


@pytest.mark.parametrize("rule", Rule)
def test_what_is_read_answers_whoever_asks_and_what_is_refused_never_would(
    tmp_path: Path, values: Values, rule: Rule
) -> None:
    for mechanism in ("laplace", "gaussian", "propose-test-release", "recommended"):
        require_answers_or_a_refusal(tmp_path, values, mechanism, rule)


def require_answers_or_a_refusal(tmp_path: Path, values: Values, mechanism: str, rule: Rule) -> None:
    delta = 1e-8 if MECHANISMS[mechanism].guarantee == "approximate" else 0.0
    path = written(tmp_path, with_rule(values, mechanism, rule, delta, 1e-6))
    account = Budget(values["budget"]["epsilon"], 1e-6, rule)
    kinds = candidates(MECHANISMS[mechanism], delta)
    try:
        read(path)
    except PolicyError:
        assert not any(account.affords({}, kind.cost(10.0**power, delta)) for kind in kinds for power in range(-12, 0))
    else:
        for first, second in itertools.product(kinds, repeat=2):  # alice's, then bob's
            one, other = first.cost(0.01, delta), second.cost(0.02, delta)
            assert account.affords({one: 1}, other)


def test_a_file_that_is_no_policy_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    with pytest.raises(PolicyError, match="cannot be read: No such file"):
        read(path)
    path.write_bytes(b"\xff")
    with pytest.raises(PolicyError, match="not UTF-8 text"):
        read(path)
    path.write_text("[data")
    with pytest.raises(PolicyError, match="not valid TOML"):
        read(path)


def test_the_example_s_data_load(caplog: pytest.LogCaptureFixture) -> None:
    records, rows, _ = load(read(EXAMPLE / "policy.toml"))
    assert records.people == rows.people == 3000
    assert len(rows.digests) == 2
    assert records.metrics == ("sp", "eo")


def test_data_that_others_can_read_are_warned_of(
    tmp_path: Path, values: Values, caplog: pytest.LogCaptureFixture
) -> None:
    policy = with_people(tmp_path, values, PEOPLE)
    for mode in (0o600, 0o644):
        policy.data.source.chmod(mode)
        with caplog.at_level(logging.WARNING):
            load(policy)
        assert bool(caplog.records) == (mode == 0o644)


def test_every_stratum_of_every_metric_needs_the_minimum(tmp_path: Path, values: Values) -> None:
    for metrics, least in (("sp", 12), ("eo", 4), ("fpr", 6), ("eodds_max", 4)):  # of two strata the smaller one counts
        values["audit"]["metrics"] = [metrics]
        assert load(with_people(tmp_path, values, PEOPLE, least - (metrics == "sp")))[0].people == len(PEOPLE)
        policy = with_people(tmp_path, values, PEOPLE, least + 1)
        why = f"data.minimum_group: metric {metrics} looks at a group of fewer than {least + 1}"
        with pytest.raises(PolicyError, match=why):
            load(policy)


def test_groups_that_could_not_be_of_other_sizes_are_refused(tmp_path: Path, values: Values) -> None:
    # The service that starts would say that both groups have 12; with 11 somebody may be in the other one.
    values["audit"]["metrics"] = ["sp"]
    people = [(group, label) for group in "ab" for label in (0, 1) for _ in range(6)]
    with pytest.raises(PolicyError, match=r"^data.minimum_group: a metric looks at no more than 24 people"):
        load(with_people(tmp_path, values, people, minimum=12))
    records, _, _ = load(with_people(tmp_path, values, people, minimum=11))
    assert records.minimum_group == 11
    policy = with_people(tmp_path, values, people, minimum=11)
    assert policy.shares.minimum_group == 11


def test_a_group_that_is_too_small_is_refused_without_saying_which(tmp_path: Path, values: Values) -> None:
    swapped = [({"a": "b", "b": "a"}[group], label) for group, label in PEOPLE]
    texts = set()
    for people in (PEOPLE, swapped):
        with pytest.raises(PolicyError) as caught:
            load(with_people(tmp_path, values, people, minimum=5))
        texts.add(str(caught.value))
    (text,) = texts
    assert not re.search(r"'[ab]'|advantaged", text)


def test_a_metric_whose_stratum_lacks_a_group_is_refused(tmp_path: Path, values: Values) -> None:
    people = [("a", 1)] * 5 + [("a", 0)] * 5 + [("b", 0)] * 5
    with pytest.raises(PolicyError, match=r"audit\.metrics: metric eo: a group is too small"):
        load(with_people(tmp_path, values, people))


def test_rows_of_neither_group_are_refused_because_leaving_them_out_would_tell(tmp_path: Path, values: Values) -> None:
    people = [*PEOPLE, ("c", 1)]
    with pytest.raises(PolicyError, match=r"data.disadvantaged: some rows are in neither group"):
        load(with_people(tmp_path, values, people))
    values["data"]["disadvantaged"] = ["b", "c"]
    assert load(with_people(tmp_path, values, people))[0].people == len(people)


def with_rows(folder: Path, values: Values, rows: list[str], **data: object) -> Policy:
    """A policy of rows of an id, a group, a label and an income, of which any may be missing."""
    (folder / "loans.csv").write_text("\n".join(["person,group,repaid,income", *rows]) + "\n")
    values["data"] |= {"minimum_group": 2, **data}
    return read(written(folder, values))


def rows_of(**changes: str) -> list[str]:
    """Twenty rows, of which some are as given, by number."""
    rows = [f"p{row},{'ab'[row % 2]},{row // 2 % 2},{row}" for row in range(1, 21)]
    return [changes.get(f"row{row}", text) for row, text in enumerate(rows, 1)]


def test_rows_may_have_ids(tmp_path: Path, values: Values) -> None:
    _, rows, _ = load(with_rows(tmp_path, values, rows_of()))
    assert (rows.people, rows.ids, rows.digests) == (20, None, ())
    _, rows, _ = load(with_rows(tmp_path, values, rows_of(), id="person", public=["income"]))
    assert rows.ids is not None
    assert (rows.people, rows.ids.column, rows.ids.public_columns) == (20, "person", ("income",))
    assert len(set(rows.digests)) == 2


def test_ids_are_read_as_they_are_spelt(tmp_path: Path, values: Values) -> None:
    rows = [f"{2**70 + row},{text.partition(',')[2]}" for row, text in enumerate(rows_of())]
    ids = load(with_rows(tmp_path, values, rows, id="person"))[1].ids  # as float64 they were all alike
    assert ids is not None
    assert ids.order.tolist() == list(range(20))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"row3": ",b,1,3"}, r"data\.id: .*loans\.csv: column 'person': row 3 has no id$"),
        ({"row7": "p2,b,1,3", "row9": ",b,1,1"}, r"column 'person': row 7 has the id of row 2; ids must be unique$"),
    ],
)
def test_the_first_row_that_has_no_id_of_its_own_is_named_without_its_content(
    tmp_path: Path, values: Values, changes: dict[str, str], why: str
) -> None:
    with pytest.raises(PolicyError, match=why) as caught:
        load(with_rows(tmp_path, values, rows_of(**changes), id="person"))
    assert "p2" not in str(caught.value)


UNFIT_KEYS = [
    ({"id": "group"}, "data.id: must be a column of its own"),
    ({"id": "repaid"}, "data.id: must be a column of its own"),
    ({"public": ["income"]}, "data.public: needs data.id"),
    ({"id": "person", "public": ["group"]}, "data.public: must not have a protected column"),
    (
        {"id": "person", "public": ["income"], "groups": {"income": ["1", "other"]}},
        "data.public: must not have a",
    ),
    ({"id": "person", "groups": {"person": ["1", "other"]}}, "data.groups: must not have the column of ids"),
    ({"groups": {"repaid": ["0", "1"]}}, "data.groups: must not have the column of ids, nor the label"),
    ({"id": "person", "public": ["income", "income"]}, "data.public: must be different columns"),
    ({"id": "person", "public": ["person"]}, "data.public: must be different columns"),
    ({"missing": "keep"}, "data.missing: must be 'refuse' or 'drop'"),
    ({"impute": {"income": "3"}}, "data.impute.income: must be a protected column or the label"),
    ({"impute": {"repaid": 1}}, "data.impute: must be a valid string"),
]


def test_keys_about_rows_that_do_not_fit_are_refused(tmp_path: Path, values: Values) -> None:
    for data, why in UNFIT_KEYS:
        assert refused(tmp_path, values | {"data": values["data"] | data}).startswith(why)


@pytest.mark.parametrize(("data", "column"), [({"id": "person", "public": ["income"]}, "income")])
def test_what_answers_tell_without_noise_is_not_sold_with_noise(
    tmp_path: Path, values: Values, data: Values, column: str
) -> None:
    values["data"] |= data
    releasing(columns={column: ["1", "2"]}, source="../" + tmp_path.name + "/loans.csv")(values)
    why = f"release.columns.{column}: answers about loans tell it without noise"
    assert refused(tmp_path, values).startswith(why)
    place = values.pop("deployment")
    seller = {**values, "data": {**values["data"], "label": "repaid", "id": "number", "public": []}}
    asked = {**values, "release": {**RELEASE, "source": "others.csv"}}
    both = {"deployment": place, "datasets": {"cards": seller, "loans": asked}}
    assert refused(tmp_path, both).startswith(why)
    seller["release"]["source"] = "others.csv"
    reading.read(written(tmp_path, both))


LACKING = {"row2": "p2,,1,2", "row3": "p3,a,,3", "row8": "p8,,,8", "row9": "p9,b,1,"}


def test_missing_values_are_one_line_with_all_columns_and_what_to_do(tmp_path: Path, values: Values) -> None:
    with pytest.raises(PolicyError) as caught:
        load(with_rows(tmp_path, values, rows_of(**LACKING), id="person", public=["income"]))
    assert str(caught.value) == (
        f"data.source: {tmp_path}/loans.csv: missing values: repaid 2, group 2 of 20 rows: fill them in, or say in "
        'data.impute what stands for them; data.missing = "drop" leaves out rows without repaid alone'
    )
    with pytest.raises(PolicyError, match="missing values: repaid 2 of 20 rows"):
        load(with_rows(tmp_path, values, rows_of(**LACKING), impute={"group": "b"}))


def test_rows_without_a_label_are_left_out_of_the_records_and_not_of_the_rows(tmp_path: Path, values: Values) -> None:
    whole = load(with_rows(tmp_path, values, rows_of(), id="person", public=["income"]))[1]
    lost = rows_of(row2="p2,a,,2", row3="p3,a,,3", row8="p8,b,,8", row9="p9,b,0,9")
    records, rows, _ = load(with_rows(tmp_path, values, lost, id="person", public=["income"], missing="drop"))
    assert rows.people == 20
    assert np.flatnonzero(~rows.audited).tolist() == [1, 2, 7]
    assert rows.digests == whole.digests
    kept = [row.split(",") for number, row in enumerate(lost) if number not in (1, 2, 7)]
    assert records.labels.tolist() == [int(label) for _, _, label, _ in kept]
    assert records.protected.tolist() == [int(group == "a") for _, group, _, _ in kept]


@pytest.mark.parametrize(("lost", "groups"), [({"row3": "p3,,1,3"}, {}), (LACKING, {"group": ["a", "b", "unknown"]})])
def test_nobody_is_left_out_for_want_of_a_protected_value(
    tmp_path: Path, values: Values, lost: dict[str, str], groups: Values
) -> None:
    with pytest.raises(PolicyError) as caught:
        load(with_rows(tmp_path, values, rows_of(**lost), missing="drop", groups=groups))
    assert re.fullmatch(r"data\.missing: .*loans\.csv: missing values: .*group [12] of 20 rows: .*", str(caught.value))


def test_a_value_stands_for_those_that_are_missing(tmp_path: Path, values: Values) -> None:
    records, rows, _ = load(with_rows(tmp_path, values, rows_of(**LACKING), impute={"group": "b", "repaid": "0"}))
    assert (rows.people, records.people) == (20, 20)
    assert (records.protected[[1, 7]].tolist(), records.labels[[2, 7]].tolist()) == ([0, 0], [0, 0])
    both = {"missing": "drop", "impute": {"group": "a"}}
    records, rows, _ = load(with_rows(tmp_path, values, rows_of(**LACKING), **both))
    assert np.flatnonzero(~rows.audited).tolist() == [2, 7]
    assert records.protected[1] == 1


def test_everybody_is_in_a_group_also_whom_audits_leave_out(tmp_path: Path, values: Values) -> None:
    listed = {"group": ["a", "b", "unknown"], "income": ["1", "2", "other", "unknown"]}
    lost = rows_of(row3="p3,a,,3", row8="p8,b,,8", row9="p9,b,1,")
    _, rows, grouped = load(with_rows(tmp_path, values, lost, missing="drop", groups=listed))
    assert grouped is not None
    assert rows.people == grouped.codes.shape[1] == len(grouped.labels) == 20
    assert np.flatnonzero(grouped.labels == NO_LABEL).tolist() == [2, 7]
    assert np.flatnonzero(grouped.codes[0] == 2).tolist() == []
    assert grouped.codes[1].tolist() == [0, 1, *[2] * 6, 3, *[2] * 11]
    filled = {"group": "b", "repaid": "0"}
    _, _, grouped = load(with_rows(tmp_path, values, rows_of(**LACKING), impute=filled, groups=listed))
    assert grouped is not None
    assert (grouped.codes[0, [1, 7]].tolist(), grouped.labels[[2, 7]].tolist()) == ([2, 2], [0, 0]), "still unknown"
    _, _, grouped = load(with_rows(tmp_path, values, rows_of(**LACKING), impute=filled, groups={"group": ["a", "b"]}))
    assert grouped is not None
    assert grouped.codes[0, [1, 7]].tolist() == [1, 1]


LIKELY = {"race": {"columns": {"w": "p-w", "b": "p-b"}, "golden": "told"}}


def with_probabilities(folder: Path, values: Values, *changed: tuple[int, str], golden: int = 100) -> Policy:
    """A file of 200 people, of whom some are known for sure, but for rows that are changed."""
    known = (["w", "b"] * 100)[:golden]
    rows = [f"{'ab'[row % 2]},{row // 2 % 2},0.25,.7500,{known[row] if row < golden else ''}" for row in range(200)]
    for row, text in changed:
        rows[row] = text
    (folder / "loans.csv").write_text("\n".join(["group,repaid,p-w,p-b,told", *rows]) + "\n")
    values["data"] |= {"minimum_group": 2, "probabilities": LIKELY}
    return read(written(folder, values))


def test_an_attribute_may_be_known_by_probabilities(tmp_path: Path, values: Values) -> None:
    values["data"]["groups"] = {"group": ["a", "b"]}
    policy = with_probabilities(tmp_path, values, (150, "a,1,0.3335,0.6668,"))
    assert {"p-w", "p-b", "told"} <= policy.hidden
    grouped = load(policy)[2]
    assert grouped is not None
    assert grouped.probable is not None
    assert [(each.name, each.values) for each in grouped.attributes] == [("group", ("a", "b")), ("race", ("w", "b"))]
    assert grouped.probable.parts[[0, 150]].tolist() == [[256, 768], [341, 683]]
    assert grouped.codes[1, grouped.probable.golden].tolist() == [0, 1] * 50
    assert [grouped.golden(name) for name in ("group", "race")] == [0, 100]


NO_PROBABILITIES = [
    ((3, "a,1,0.25,0.78,"), 100, "race.columns: .*: row 4 has no probabilities, .* nor have 0 more of 200 rows"),
    ((3, "a,1,-0.25,1.25,"), 100, "race.columns: .*: row 4 has no probabilities"),
    ((3, "a,1,,1,"), 100, "race.columns: .*: row 4 has no probabilities"),
    ((3, "a,1,some,1,"), 100, "race.columns: .*: column 'p-w' has no numbers"),
    ((3, "a,1,0.5,0.5,x-1"), 100, "race.golden: some rows have a value that is not among its columns' values"),
    ((0, "a,1,0.5,0.5,"), 100, "race.golden: the value is known of 99 of 200 people; it must be of at least 100"),
    ((0, "a,1,0.5,0.5,w"), 200, "race.golden: the value is known of 200 of 200 people"),
]


def test_what_is_no_probability_and_no_golden_sample_is_one_line(tmp_path: Path, values: Values) -> None:
    for changed, golden, why in NO_PROBABILITIES:
        policy = with_probabilities(tmp_path, values, changed, golden=golden)
        with pytest.raises(PolicyError, match=rf"^data\.probabilities\.{why}") as caught:
            load(policy)
        for secret in ("0.78", "1.25", "some ,", "x-1"):
            assert secret not in str(caught.value)


def test_a14_probabilities_of_two_digits_may_sum_up_to_as_much_as_rounding_makes_of_1(
    tmp_path: Path, values: Values
) -> None:
    grouped = load(with_probabilities(tmp_path, values, (150, "a,1,0.25,0.76,"), (151, "a,1,0.3,0.69,")))[2]
    assert grouped is not None
    assert grouped.probable is not None
    assert set(grouped.probable.parts.sum(axis=1).tolist()) == {1024}
    with pytest.raises(PolicyError, match=r"row 151 has no probabilities, .* within 0\.01,"):
        load(with_probabilities(tmp_path, values, (150, "a,1,0.25,0.73,")))
    with pytest.raises(PolicyError, match=r"row 151 has no probabilities, .* within 0\.005,"):  # of four digits
        load(with_probabilities(tmp_path, values, (150, "a,1,0.25,0.76,"), (151, "a,1,.2501,.7499,")))


PROBABILITIES: list[tuple[Values, str]] = [
    ({"threshold": 0.5}, "race.threshold: nobody is put in the likeliest group: .* overstates gaps"),
    ({"cut": 0.5}, "race.cut: unknown key"),
    ({"columns": {"w": "p-w"}}, "race.columns: must"),
    ({"columns": {"w": "p-w", "b": "p-w"}}, "race: must be another attribute"),
    ({"columns": {"w": "p-w", "b": "repaid"}}, "race: must be another attribute"),
    ({"columns": {"w": "p-w", "unknown": "p-b"}}, 'race.columns: "unknown" has no probability'),
    ({"columns": {str(each): f"p-{each}" for each in range(32)}}, ""),
    ({"columns": {str(each): f"p-{each}" for each in range(33)}}, "race.columns: must"),
]


def test_b7_thresholds_are_refused_with_the_reason(tmp_path: Path, values: Values) -> None:
    for section, why in PROBABILITIES:
        changed = copy.deepcopy(values)
        changed["data"]["probabilities"] = {"race": LIKELY["race"] | section}
        if why:
            assert re.match(f"data.probabilities.{why}", refused(tmp_path, changed))
            continue
        read(written(tmp_path, changed))
        changed["data"]["groups"] = {"group": ["a", "b"]}
        assert refused(tmp_path, changed).startswith("data.probabilities.race.columns: make too many groups")


def test_a_golden_sample_is_needed_and_one_attribute_alone_has_probabilities(tmp_path: Path, values: Values) -> None:
    values["data"]["probabilities"] = {"race": {"columns": LIKELY["race"]["columns"]}}
    assert refused(tmp_path, values) == "data.probabilities.race.golden: is missing"
    values["data"]["probabilities"] = {"race": LIKELY["race"], "age": LIKELY["race"]}
    assert refused(tmp_path, values).startswith("data.probabilities: must have at most 1 item")


def test_what_is_imputed_must_occur(tmp_path: Path, values: Values) -> None:
    with pytest.raises(DataError, match="column 'group' has no value 'c'; its values are"):
        load(with_rows(tmp_path, values, rows_of(**LACKING), impute={"group": "c", "repaid": "0"}))


def test_other_groups_are_refused_as_ever_where_rows_are_left_out(tmp_path: Path, values: Values) -> None:
    with pytest.raises(PolicyError, match=r"data.disadvantaged: some rows are in neither group"):
        load(with_rows(tmp_path, values, rows_of(row2="p2,c,1,2", row3="p3,b,,3"), missing="drop"))


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, values: Values, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_then_changed(*arguments: Any, **others: Any) -> Any:
        table = read_table(*arguments, **others)
        arguments[0].write_text(arguments[0].read_text() + "p99,a,1,1\n")
        return table

    read_table = loading.read_table
    monkeypatch.setattr(loading, "read_table", read_then_changed)
    with pytest.raises(PolicyError, match="changed while it was read"):
        load(with_rows(tmp_path, values, rows_of(), id="person"))


def test_the_summary_is_the_same_for_every_protected_attribute(tmp_path: Path, values: Values) -> None:
    rng = np.random.default_rng(3)
    summaries = {
        with_people(tmp_path, values, [(str(rng.choice(["a", "b"])), label) for _, label in PEOPLE]).summary
        for _ in range(5)
    }
    assert summaries == {"loans: metrics sp, eo; mechanism recommended; epsilon 4; developers alice, bob"}


def with_released(folder: Path, values: Values, rows: str, **changes: object) -> Policy:
    (folder / "training.csv").write_text(rows)
    releasing(**changes)(values)
    return read(written(folder, values))


ROWS = "region,income,group\nnorth,1,a\nwest,2,b\neast,3,a\n"


def test_what_is_released_is_the_policy_s_domains_whatever_occurs(tmp_path: Path, values: Values) -> None:
    loaded = load_release(with_released(tmp_path, values, ROWS, split="k-based"))
    assert loaded is not None
    columns, codes = loaded
    assert [(column.name, column.place, column.domain) for column in columns] == [("region", 0, 4), ("group", 2, 2)]
    assert [column.share for column in columns] == pytest.approx([2 / 3, 1 / 3])
    assert codes.tolist() == [[0, 0], [3, 1], [1, 0]]
    assert codes.dtype == np.uint8


def test_numbers_and_missing_values_are_values_where_they_are_listed(tmp_path: Path, values: Values) -> None:
    rows = "grade\n1\n\n2\n".replace("\n\n", '\n""\n')
    policy = with_released(tmp_path, values, rows, columns={"grade": ["?", "1", "2", "3"]})
    loaded = load_release(policy)
    assert loaded is not None
    assert loaded[1].tolist() == [[1], [0], [2]]


def test_nothing_is_released_unless_the_policy_says_so(tmp_path: Path, values: Values) -> None:
    assert load_release(read(written(tmp_path, values))) is None


def test_a_value_outside_its_domain_is_refused_without_saying_which(tmp_path: Path, values: Values) -> None:
    for last in ("c", "", "A"):
        with pytest.raises(PolicyError) as caught:
            load_release(with_released(tmp_path, values, ROWS + f"south,4,{last}\n"))
        why = "release.columns.group: some rows have a value that is not listed, or none: "
        assert str(caught.value).startswith(why)
        assert "\n" not in str(caught.value)


def test_columns_stand_in_the_order_of_the_file(tmp_path: Path, values: Values) -> None:
    turned = dict(reversed(RELEASE["columns"].items()))
    with pytest.raises(PolicyError, match=r"^release.columns: must stand in the order of the file: region, group$"):
        load_release(with_released(tmp_path, values, ROWS, columns=turned))


def test_a_release_that_the_ledger_could_not_keep_is_refused(
    tmp_path: Path, values: Values, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compliance.deployment.policy.loading._RELEASE_BYTES_MAX", 3 * 6 * 8 - 1)
    assert load_release(with_released(tmp_path, values, ROWS)) is not None
    with pytest.raises(PolicyError, match=r"^release.source: a release of 3 people takes "):
        load_release(with_released(tmp_path, values, ROWS, protocol="the-server"))


def test_a_column_that_is_not_there_is_not_released(tmp_path: Path, values: Values) -> None:
    with pytest.raises(DataError, match="no column 'race'"):
        load_release(with_released(tmp_path, values, ROWS, columns={"race": ["a", "b"]}))


# Several data sets -------------------------------------------------------------------------------------------------


@pytest.fixture
def several() -> Values:
    return tomllib.loads((EXAMPLE / "several.toml").read_text())


def test_each_data_set_has_a_policy_as_if_it_were_alone(several: Values, values: Values, tmp_path: Path) -> None:
    found = reading.read(EXAMPLE / "several.toml")
    assert found.is_several
    assert list(found.datasets) == ["loans", "applications"]
    for name, policy in found.datasets.items():
        assert (policy.data_name, policy.deployment) == (name, found.deployment)
    alone = reading.read(written(tmp_path, values))
    assert not alone.is_several
    assert list(alone.datasets) == ["loans"]
    assert alone.digest != found.digest


def test_a_developer_of_several_data_sets_has_the_largest_quota(several: Values, tmp_path: Path) -> None:
    several["datasets"]["loans"]["developers"]["bob"] |= {"calls_a_day": 5, "bytes_a_day": 50}
    several["datasets"]["applications"]["developers"]["bob"] |= {"calls_a_day": 7, "bytes_a_day": 40}
    quotas = reading.read(written(tmp_path, several)).quotas
    assert set(quotas) == {"alice", "bob"}
    assert (quotas["bob"].calls, quotas["bob"].bytes) == (7, 50)


BAD_SEVERAL: dict[str, tuple[Callable[[Values], Any], str]] = {
    "a section of one": (
        lambda it: it.update(audit={}),
        "audit: belongs to one data set: name it datasets.NAME.audit",
    ),
    "none": (lambda it: it.update(datasets={}), "datasets: must have a table for each data set"),
    "no table": (lambda it: it["datasets"].update(loans=1), "datasets.loans: must be a table"),
    "a name": (
        lambda it: it["datasets"]["loans"]["data"].update(name="x"),
        "datasets.loans.data.name: leave it out: the data set is called loans",
    ),
    "two deployments": (
        lambda it: it["datasets"]["loans"].update(deployment={}),
        "datasets.loans.deployment: there is one for all data sets",
    ),
    "a bad name": (
        lambda it: it["datasets"].update({"a b": it["datasets"].pop("loans")}),
        "datasets.a b.data.name: must be 1 to 64 printable ASCII characters without spaces, not 'a b'",
    ),
    "a key": (
        lambda it: it["datasets"]["applications"]["audit"].update(metric=["sp"]),
        "datasets.applications.audit.metric: unknown key; did you mean metrics?",
    ),
    "a problem": (
        lambda it: it["datasets"]["applications"]["developers"]["bob"].update(epsilon=3.0),
        "datasets.applications.developers.bob.epsilon: must be at most budget.epsilon, not 3",
    ),
    "a deployment's key": (lambda it: it["deployment"].update(listen="x"), "deployment.listen: must be host:port"),
    "no deployment": (lambda it: it.pop("deployment"), "deployment: is missing"),
    "one name twice": (
        lambda it: it["datasets"]["applications"].update(
            release={
                "name": "loans",
                "source": "x.csv",
                "protocol": "grr",
                "epsilon": 1.0,
                "columns": {"group": ["a", "b"]},
            }
        ),
        "datasets: two of them, or of what they release, are called loans in the ledger",
    ),
}


def test_what_several_data_sets_cannot_be_is_refused_in_one_line(several: Values, tmp_path: Path) -> None:
    for what, (spoil, why) in BAD_SEVERAL.items():
        spoilt = copy.deepcopy(several)
        spoil(spoilt)
        path = written(tmp_path, spoilt)
        with pytest.raises(PolicyError) as caught:
            reading.read(path)
        assert str(caught.value).startswith(f"{path}: {why}"), what
        assert "\n" not in str(caught.value)


# Texts and paths that are none ---------------------------------------------------------------------------------------


def texts(value: Any, *place: Any) -> Iterator[tuple[Any, ...]]:
    """Where a policy has a text."""
    if isinstance(value, str):
        yield place
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from texts(below, *place, key)


def put(values: Any, place: tuple[Any, ...], text: str) -> Any:
    """The policy with another text."""
    changed = copy.deepcopy(values)
    below = changed
    for key in place[:-1]:
        below = below[key]
    below[place[-1]] = text
    return changed


@pytest.fixture
def everything(tmp_path: Path, values: Values) -> Values:
    """A policy with every key that is a text, beside its files."""
    for name in ("loans.csv", "training.csv"):
        shutil.copyfile(EXAMPLE / name, tmp_path / name)
    head, *rows = (tmp_path / "loans.csv").read_text().splitlines()
    rows = [f"{row},0.25,0.75,{'w' * (place % 2)}" for place, row in enumerate(rows)]
    (tmp_path / "loans.csv").write_text("\n".join([f"{head},p-w,p-b,told", *rows]) + "\n")
    groups = {"years_employed": ["1", "other"]}
    release = {"source": "training.csv", "protocol": "grr", "epsilon": 1.0, "name": "sold", "split": "uniform"}
    values["deployment"]["telemetry"] = "http://127.0.0.1:4318"
    values["data"] |= {"name": "own", "impute": {"repaid": "0"}, "id": "id", "public": ["income"], "groups": groups}
    values["data"] |= {"missing": "refuse", "probabilities": LIKELY, "negative": "0", "missing_values": ["none given"]}
    values["audit"] |= {"bounding": "none", "precision": "float64", "promise": "likely"}
    values["budget"]["rule"] = "basic"
    values["release"] = release | {"columns": {"group": ["a", "b"]}}
    return values


NUMBERS = {
    *("minimum_group", "least_share", "queries_max", "epsilon", "epsilon_min", "epsilon_max", "delta", "shares"),
    *("reveal_max", "reveal_total", "answer_seconds", "weights", "committed"),
}


def test_the_policy_with_every_text_is_served_and_has_every_text(tmp_path: Path, everything: Values) -> None:
    policy = read(written(tmp_path, everything))
    assert load(policy)[2] is not None
    assert load_release(policy) is not None
    given = {place[:2] for place in texts(everything)}
    for name in ("deployment", "data", "audit", "budget", "release"):
        annotation: Any = Policy.model_fields[name].annotation if name != "release" else PolicyRelease
        for key in set(annotation.model_fields) - NUMBERS - {"table"}:  # which an engine has: tests/e2e/test_tables.py
            assert (name, key) in given, f"{name}.{key}: give it a text, or say that it is a number"


UNFIT = {
    "NUL": ("a\0b", "must have no control characters"),
    "a line break": ("a\nb", "must have no control characters"),
    "an escape": ("a\x1b[2Jb", "must have no control characters"),
    "another line break": ("a\u2028b", "must have no control characters"),
    "too long": ("x" * 5000, "must have at most 4,096 characters, not 5,000"),
}


def test_a_text_that_is_none_is_one_line_with_its_key(tmp_path: Path, everything: Values) -> None:
    for place, (text, why) in zip(texts(everything), itertools.cycle(UNFIT.values()), strict=False):
        key = ".".join(each for each in place if isinstance(each, str))
        assert refused(tmp_path, put(everything, place, text)).startswith(f"{key}: {why}")
    for where in (("data", "impute"), ("data", "groups"), ("release", "columns"), ("developers",), ()):
        changed = copy.deepcopy(everything)
        section = changed
        for part in where:
            section = section[part]
        section["a\0\n"] = next(iter(section.values()))
        assert refused(tmp_path, changed).startswith(".".join((*where, "a\\x00\\n: must have no control")))


PATHS = [
    (section, key)
    for section, kind in {"deployment": DeploymentSection, "data": DataSection, "release": PolicyRelease}.items()
    for key, field in kind.model_fields.items()
    if field.annotation in (Path, Path | str)
]


def test_every_path_of_a_policy_is_known_here() -> None:
    assert len(PATHS) == 5


def test_a_path_that_is_none_is_one_line_with_its_key(tmp_path: Path, everything: Values) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    for section, key in PATHS:
        wanted = "a folder" if key == "credentials" else "a file"
        for path in ("pipe.csv", "/dev/zero", "loans.csv" if wanted == "a folder" else "folder.csv"):
            changed = put(everything, (section, key), path)
            assert refused(tmp_path, changed) == f"{section}.{key}: must be {wanted}, not {path!r}"
        for path in (
            "x" * 300,
            "/".join(["x" * 200] * 20) + "x" * 60,
            "loans.csv/x",
            *["x" * 250] * (wanted == "a file"),
        ):
            changed = put(everything, (section, key), path)
            assert refused(tmp_path, changed).startswith(f"{section}.{key}: must be a path: ")


def test_a_table_that_is_not_there_or_lacks_something_is_one_line_with_its_key(
    tmp_path: Path, everything: Values
) -> None:
    for key, read_it in (("data", load), ("release", load_release)):
        changed = put(everything, (key, "source"), "gone.csv")
        with pytest.raises(DataError, match=rf"^{key}\.source: .*gone\.csv: no such file$"):
            read_it(read(written(tmp_path, changed)))
    with pytest.raises(DataError, match=r"^data\.source: .*loans\.csv: no column 'x'; "):
        load(read(written(tmp_path, put(everything, ("data", "protected"), "x"))))


def test_a_policy_that_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "policy.toml")
    with pytest.raises(PolicyError, match=r"policy\.toml: cannot be read: not a file$"):
        read(tmp_path / "policy.toml")


def test_of_a_pattern_a_service_may_read_what_is_below_the_last_folder_that_is_named(
    tmp_path: Path, values: Values
) -> None:
    values["audit"]["mechanism"] = "counts"
    values["data"] |= {"source": "parquet:2026/people/*.parquet", "id": "person"}
    values["tables"] = {"scores": {"source": "parquet:20*/scores/x.parquet", "developers": ["alice"]}}
    people, scores, *_ = loading.files_of(read(written(tmp_path, values)))
    assert (people, scores) == (tmp_path / "2026" / "people" / "*.parquet", tmp_path / "x.parquet")
