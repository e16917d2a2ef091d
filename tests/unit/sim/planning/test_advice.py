"""`fairwall plan advise` without its command line: every branch against its figures, and commands that can be run."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import typer
import typer.core

from developer import training
from developer.training import practice
from fairwall.laws.metrics.sensitivity import LabelGroupCounts
from fairwall.tables.people import Roles
from sim.cli.main import app
from sim.cli.plan.advise import as_text, as_values
from sim.games import read
from sim.planning import advice, situation
from sim.planning.advice import SMALL_SHARE, TREE, Advice, AdviceRequest, advise
from sim.planning.commands import Command, _spelled
from sim.planning.practices import DATA, DOMAINS, MECHANISMS, MODELS, PRACTICES, AdviceError, check_numbers, find_domain
from sim.planning.situation import Situation, judge, look
from sim.planning.table import ColumnNames, GroupTable

DOCS = Path(__file__).parents[4] / "docs"
LOANS = DOCS / "example" / "loans.csv"

ROLES = Roles("group", "a", "b", "label", "1")

TABLES = {
    "large": LabelGroupCounts(2000, 2000, 2000, 2000),
    "unequal": LabelGroupCounts(n00=1500, n01=5000, n10=100, n11=3000),
    "small": LabelGroupCounts(n00=45, n01=70, n10=25, n11=60),
    "tiny": LabelGroupCounts(n00=3, n01=3, n10=3, n11=0),
    "few": LabelGroupCounts(n00=8, n01=90, n10=0, n11=30),
}


def table(counts: LabelGroupCounts) -> GroupTable:
    return GroupTable("people.csv", counts, ("b", "a"), "label 1", (), ROLES)


@cache
def seen(name: str, epsilon: float) -> Situation:
    return judge(ColumnNames("people.csv", "group", "label"), table(TABLES[name]), epsilon, 0.05)


CASES = [("large", 1.0), ("unequal", 0.1), ("small", 0.1), ("small", 4.0), ("few", 1.0), ("tiny", 2.0)]


@cache
def all_advice() -> list[Advice]:
    """Each table at an epsilon, in a domain of each priority."""
    domains = [DOMAINS[name] for name in ("lending", "medical-research", "personalised-services")]
    return [
        advise(AdviceRequest(domain, epsilon, 0.05, seen(name, epsilon)))
        for name, epsilon in CASES
        for domain in domains
    ]


@pytest.mark.check
def test_every_branch_is_taken_and_everything_is_recommended_somewhere() -> None:
    found = all_advice()
    taken = {(node, branch) for each in found for node, branch in each.branches.items()}
    assert taken == {(node.name, branch) for node in TREE.values() for branch in node.then}
    names = {recommendation.name for each in found for recommendation in each.recommendations}
    assert names == {*PRACTICES, *MODELS, *MECHANISMS, *DATA}


def problems(each: Advice) -> list[str]:
    """Compute every branch anew from the table's counts, and name those that differ."""
    situation, branches = each.case.seen, each.branches
    counts, epsilon, within = situation.table.counts, each.case.epsilon, each.case.within
    groups = ((counts.n00, counts.n10), (counts.n01, counts.n11))
    sizes = [sum(group) for group in groups]
    variances = [(no + 1) * (yes + 1) / (n + 2) ** 2 / n for (no, yes), n in zip(groups, sizes, strict=True)]
    least = min(range(2), key=lambda a: sizes[a])
    noise = math.sqrt(2) / (epsilon * sizes[least])
    gap = counts.n11 / sizes[1] - counts.n10 / sizes[0]
    expected = {
        "first": each.case.domain.priority.name,
        "range": each.case.domain.priority.place(epsilon),
        "sampled": "few" if 1.96 * math.sqrt(sum(variances)) > within else "enough",
        "audited": "yes" if situation.audit.worst.probability >= 0.95 else "no",
        "dominates": "noise" if noise > math.sqrt(variances[least]) else "sampling",
        "share": "small" if sizes[least] < SMALL_SHARE * sum(sizes) else "large",
        "labels": "differ" if abs(gap) > within else "alike",
    }
    if expected["audited"] == "no":
        needed = situation.audit.epsilon
        cheap = needed is not None and needed <= each.case.domain.priority.most
        expected["affordable"] = "raise" if cheap else "collect"
    return [node for node in {*expected, *branches} if expected.get(node) != branches.get(node)]


def test_a_branch_is_what_the_counts_say() -> None:
    assert [found for each in all_advice() for found in problems(each)] == []


def test_noise_as_the_paper_prints_it_would_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin: with 1/(epsilon sqrt(n)) noise seems to err more where sampling does."""
    monkeypatch.setattr(situation, "of_noise", lambda epsilon, people: 1 / (epsilon * math.sqrt(people)))
    assert problems(advise(AdviceRequest(DOMAINS["lending"], 1.0, 0.05, seen("large", 1.0)))) == ["dominates"]


def test_rows_are_asked_for_where_the_audit_does_not_hold_and_nowhere_else() -> None:
    for each in all_advice():
        names = [recommendation.name for recommendation in each.recommendations]
        lacking = each.branches["audited"] == "no" or each.branches["sampled"] == "few"
        assert ("collect" in names) == lacking
        assert ("audit" in names) == (each.branches["audited"] == "yes")
        assert each.verdict.startswith("too few rows" if each.branches["audited"] == "no" else "enough rows")


def test_without_a_table_the_domain_alone_is_answered() -> None:
    whole = [
        advise(AdviceRequest(find_domain(name), domain.priority.default, 0.05, None))
        for name, domain in DOMAINS.items()
    ]
    for each in whole:
        assert set(each.branches) == {"first", "range"}
        assert each.branches["range"] == "within"
        assert len(each.steps) == len(TREE)
    for command in {recommendation.command for each in whole for recommendation in each.recommendations}:
        require_valid(command)


@cache
def commands() -> dict[str, typer.core.TyperCommand]:
    return typer.main.get_command(app).commands  # type: ignore[attr-defined,no-any-return]


def require_valid(command: Command) -> None:
    """Parse a command as the command line would, its scenario and settings included."""
    program, name, *options = command
    assert program == "fairwall"
    found = commands()[name]
    while hasattr(found, "commands"):
        name, *options = options
        found = found.commands[name]
    found.make_context(name, list(options))
    if name != "run":
        return
    scenario, *settings = options
    settings = [setting.removeprefix("--set=") for setting in settings]
    assert len(read(scenario, settings).cells) == 1


def test_every_command_can_be_run() -> None:
    for command in {recommendation.command for each in all_advice() for recommendation in each.recommendations}:
        require_valid(command)


def test_a_command_that_names_what_is_not_there_is_found_out() -> None:
    with pytest.raises(Exception, match="prayer"):
        require_valid(("fairwall", "run", "mitigations", "--set=training.practice=prayer"))
    with pytest.raises(Exception, match="oracle"):
        require_valid(("fairwall", "run", "reveal-adult-100", "--set=compliance.mechanism=oracle"))


def test_the_names_are_the_training_game_s() -> None:
    assert set(PRACTICES) == set(practice.PRACTICES)
    assert set(MODELS) < set(training.MODELS)


def test_a_value_reaches_the_scenario_as_it_is() -> None:
    for value in ["1", "true", ">50K", "a b", " a ", '"a"', "[1, 2]", "a=b", "inf", "1999-01-01", "é"]:
        assert read("reveal-adult-100", [f"data.positive={_spelled(value)}"]).scenario.data.positive == value


def test_a_group_of_all_others_is_not_named_as_a_value() -> None:
    others = GroupTable("people.csv", TABLES["small"], ("not a", "a"), "label 1", (), ROLES)
    each = advise(AdviceRequest(DOMAINS["lending"], 4.0, 0.05, replace(seen("small", 4.0), table=others)))
    for recommendation in each.recommendations:
        require_valid(recommendation.command)
        assert not any("not a" in word for word in recommendation.command)


def test_german_is_too_small_at_a_tenth() -> None:
    german = advise(
        AdviceRequest(DOMAINS["lending"], 0.1, 0.05, look(ColumnNames("german", "sex", "credit"), 0.1, 0.05))
    )
    assert german.verdict.startswith("too few rows")
    assert "2,900 more than there are" in german.verdict


def test_it_is_printed_in_80_columns_and_as_json() -> None:
    whole = [*all_advice(), advise(AdviceRequest(DOMAINS["hiring"], 2.0, 0.05, None))]
    whole.append(
        advise(
            AdviceRequest(DOMAINS["lending"], 2.0, 0.05, look(ColumnNames(str(LOANS), "group", "repaid"), 2.0, 0.05))
        )
    )
    for each in whole:
        lines = as_text(each).splitlines()
        assert max(len(line) for line in lines if str(LOANS) not in line) <= 80
        assert advice.RECONSTRUCTED in " ".join(as_text(each).split())
        values = json.loads(json.dumps(as_values(each), allow_nan=False))
        assert [step["node"] for step in values["walk"]] == [step.node.name for step in each.steps]


def test_a_domain_may_be_spelled_in_several_ways() -> None:
    for name in ["criminal justice", "Criminal_Justice", "personalized services", "medical-research"]:
        assert find_domain(name).named


def test_what_cannot_be_advised_about_is_named() -> None:
    with pytest.raises(AdviceError, match=r"did you mean lending.*choose one of: criminal-justice, lending, med"):
        find_domain("lendin")
    for number in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(AdviceError, match="--epsilon"):
            check_numbers(number, 0.05)
        with pytest.raises(AdviceError, match="--within"):
            check_numbers(1.0, number)


def test_measured_figures_are_those_of_the_pages() -> None:
    rows = re.findall(r"^\| `(.+?)` \| ([\d.]+) .*?\| (0\.\d+) ", (DOCS / "training.md").read_text(), re.MULTILINE)
    printed = {name: {accuracy, gap} for name, accuracy, gap in rows}
    for name, other in (("pflr*", "priv-lr"), ("priv-lr", "lr"), ("dpf-nn", "dp-nn")):
        text = MODELS[name].checked
        assert f"({other})" in text
        assert set(re.findall(r"\d+\.\d+", text)) - {"0.1"} == printed[name] | printed[other]
    page = (DOCS / "mechanisms.md").read_text()
    (head, row) = re.findall(r"^\| (?:n, N0,|1000, 104, 1, 1 ).*", page, re.MULTILINE)
    columns = dict(zip(*([cell.strip() for cell in line.split("|")] for line in (head, row)), strict=True))
    for name in ("propose-test-release", "sample-and-aggregate"):
        ours, counts = columns[name].split()[0], columns["counts"]
        assert f"median error {counts} against {ours} " in MECHANISMS[name].checked


def test_the_page_has_the_tree() -> None:
    (rows,) = re.findall(r"<!-- tree -->\n(.*?)<!-- end -->", (DOCS / "planning.md").read_text(), re.DOTALL)
    shown = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in rows.splitlines()[2:]]
    assert [(row[0], row[1], row[2].split(", ")) for row in shown] == [
        (node.name, node.asks, list(node.then)) for node in TREE.values()
    ]
