"""The ledger of claims: what a file may say, how values are computed, when a claim is reproduced, what is noticed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from fairwall.errors import UserError
from sim.papers import claim_ledger, play
from sim.papers.claim import SHIPPED, ClaimTest, Paper, find, papers
from sim.papers.claim_ledger import LOST, NOT_TESTED, REFUTED, STATUSES, UNPLAYABLE, UNPLAYED, markdown, verdict
from sim.papers.finding import CheckResult
from sim.papers.values import Value, ValueRefused
from sim.report.reproduction import NOT_REPRODUCED, REPRODUCED, UNDECIDED

ROOT = Path(__file__).parents[4]
INSIDE, OUTSIDE, ACROSS = (0.4, 0.5, 0.5, 0.5, 0.6), (4.0, 5.0, 5.0, 5.0, 6.0), (-1.0, 0.0, 0.5, 1.0, 2.0)
PREDICTION = {"value": "gap", "between": [0.0, 1.0]}

Rule = Callable[[ClaimTest, Sequence[Sequence[float]], str], str]


def of_table(**changes: Any) -> ClaimTest:
    return ClaimTest.model_validate({"table": "mine", "predicts": [PREDICTION], **changes})


def claim(name: str = "X-1", **changes: Any) -> dict[str, Any]:
    test = {"table": "mine", "predicts": [PREDICTION]}
    return {"id": name, "where": "Table 1", "kind": "number", "says": "it is between 0 and 1", "test": test, **changes}


def folder(path: Path, *claims: dict[str, Any]) -> Path:
    paper = {"paper": {"key": "X", "title": "A paper"}, "claim": list(claims or [claim()])}
    (path / "X.toml").write_text(tomli_w.dumps(paper), encoding="utf-8")
    return path


def measured(path: Path, values: Sequence[float] = INSIDE) -> tuple[tuple[Paper, ...], Path]:
    """Write a paper of one claim, and the evidence that these values make."""
    found = papers(folder(path))
    paper, own = find(found, "X-1")
    lines = [{"trial": number, "gap": value} for number, value in enumerate(values)]
    made = play.evidence(own, play.Measured(lines, {"table": "mine"}, {"mine": "ab"}, 0.5))
    return found, claim_ledger.write(paper.evidence, made)


# What a verdict is.


def wanted(kinds: Sequence[Sequence[float]]) -> str:
    if OUTSIDE in kinds:
        return NOT_REPRODUCED
    return UNDECIDED if ACROSS in kinds else REPRODUCED


def faults(rule: Rule) -> list[str]:
    found = []
    for many in (1, 2, 3):
        test = of_table(predicts=[PREDICTION] * many)
        for kinds in product((INSIDE, OUTSIDE, ACROSS), repeat=many):
            if rule(test, kinds, "") != wanted(kinds):
                found.append(str(kinds))
    # Too few units have no interval; a whole table needs none.
    for units, exact, least in product((1, 2, 4, 5, 6), (False, True), (5, 6)):
        says = rule(of_table(exact=exact, least=least), [[0.5] * units], "")
        if says != (REPRODUCED if exact or units >= least else UNDECIDED):
            found.append(f"{units} units, exact {exact}, least {least}")
    for against in ("", "a case"):
        if rule(ClaimTest(check="attribute_reveal:alone"), [], against) != (REFUTED if against else REPRODUCED):
            found.append(f"a check that found {against!r}")
    return found


def test_a_verdict_is_that_of_all_predictions() -> None:
    assert faults(verdict) == []


def overlap(test: ClaimTest, values: Sequence[Sequence[float]], against: str) -> str:
    """The twin to which an interval that overlaps is a reproduction."""
    found = verdict(test, values, against)
    return REPRODUCED if found == UNDECIDED else found


def most(test: ClaimTest, values: Sequence[Sequence[float]], against: str) -> str:
    """The twin to which one prediction of several is enough."""
    if len(values) < 2:
        return verdict(test, values, against)
    one = of_table(predicts=[PREDICTION])
    found = {verdict(one, [each], "") for each in values}
    return REPRODUCED if REPRODUCED in found else found.pop()


def believing(test: ClaimTest, values: Sequence[Sequence[float]], against: str) -> str:
    """The twin that overlooks a counterexample."""
    return verdict(test, values, "")


@pytest.mark.parametrize("twin", [overlap, most, believing])
def test_a_broken_rule_is_caught(twin: Rule) -> None:
    assert faults(twin)


def test_a_number_is_never_refuted() -> None:
    assert verdict(of_table(), [[1e9] * 10], "a case") == NOT_REPRODUCED


# How a value is computed.

LINES = [
    {"trial": trial, "defence": defence, "lambda": strength, "gap": 10.0 * trial + strength, "pair": [trial, strength]}
    for trial in (0, 1, 2)
    for defence, strength in (("none", 0.0), ("fft", 1.0), ("fft", 2.0))
]


def test_a_value_is_computed_for_each_unit() -> None:
    for text, kinds, pair, values in [
        ("gap", {"": {"lambda": 0.0}}, (), [0.0, 10.0, 20.0]),
        ("gap", {"": {"defence": ["none", "else"]}}, (), [0.0, 10.0, 20.0]),
        ("-gap * 2 + 1 / 2", {"": {"defence": "none"}}, (), [0.5, -19.5, -39.5]),
        ("max(pair[0], pair[1])", {"": {"lambda": 1}}, (), [1, 1, 2]),
        ("gap", {"": {"defence": "fft"}}, (), [1.5, 11.5, 21.5]),
        ("a.gap - b.gap", {"a": {"lambda": 2}, "b": {"defence": "none"}}, (), [2.0, 2.0, 2.0]),
        ("a.gap > b.gap", {"a": {}, "b": {}}, (), [1 / 3, 1 / 3, 1 / 3]),
        ("a.gap > b.gap", {"a": {}, "b": {}}, ("lambda",), [0.0, 0.0, 0.0]),
        ("gap", {"": {"trial": 2, "lambda": 1}}, (), [21.0]),
    ]:
        assert Value.parse(text, kinds, pair).of(LINES, "trial") == pytest.approx(values)


def test_what_is_no_arithmetic_is_refused() -> None:
    for text in [
        *("", "gap +", "gap if 1 else 2", "gap ** 2", "'gap'", "True", "gap.real.imag", "open(gap)", "max()", "a.gap"),
        *("__import__('os')", "gap[-1]", "gap[0][0]", "lambda", "(gap := 1)", "0 < gap < 1", "not gap", "[gap]"),
        "(" * 300 + "1" + ")" * 300,
    ]:
        with pytest.raises(ValueRefused):
            Value.parse(text, {"": {}})


def test_what_lines_do_not_have_is_named() -> None:
    for text, where, words in [
        ("eo", {}, "eo: no such key"),
        ("defence", {}, "defence: no number"),
        ("pair[2]", {}, "no such key"),
        ("gap / 0", {}, "division by zero"),
        ("log10(gap)", {}, "log10"),
        ("gap", {"defence": "pooled"}, "no line meets"),
    ]:
        with pytest.raises(ValueRefused, match=words):
            Value.parse(text, {"": where}).of(LINES, "trial")


# What a file may say.

BROKEN: list[tuple[str, dict[str, Any], str]] = [
    ("a test and a status", {"status": "lost", "missing": "x"}, "claim X-1: give a `test`, or a `status`"),
    ("neither", {"test": None}, "claim X-1: give a `test`"),
    ("nothing missing", {"test": None, "status": "lost"}, "claim X-1: .*missing"),
    ("another status", {"test": None, "status": "holds", "missing": "x"}, "claim X-1.status: input should be"),
    ("an unknown key", {"saying": "x"}, "claim X-1.saying"),
    ("two lines", {"says": "a\nb"}, "claim X-1.says"),
    ("two sources", {"test": {"table": "a", "play": "demo", "predicts": [PREDICTION]}}, "claim X-1.test: give one of"),
    ("nothing predicted", {"test": {"table": "a"}}, "claim X-1.test: say what the claim `predicts`"),
    ("a check that predicts", {"test": {"check": "m:f", "predicts": [PREDICTION]}}, "a `check` predicts nothing"),
    ("settings of a table", {"test": {"table": "a", "trials": 3, "predicts": [PREDICTION]}}, "go with `play`"),
    ("no region", {"test": {"table": "a", "predicts": [{"value": "gap"}]}}, "test.predicts.0: give what is `printed`"),
    (
        "two regions",
        {"test": {"table": "a", "predicts": [{**PREDICTION, "printed": 1.0}]}},
        "test.predicts.0: give what is `printed`",
    ),
    ("a margin of ends", {"test": {"table": "a", "predicts": [{**PREDICTION, "margin": 1.0}]}}, "go with what is"),
    ("ends turned", {"test": {"table": "a", "predicts": [{"value": "gap", "between": [1.0, 0.0]}]}}, "the lower end"),
    ("no arithmetic", {"test": {"table": "a", "predicts": [{**PREDICTION, "value": "gap +"}]}}, "is no arithmetic"),
    ("a path for a name", {"id": "../X"}, "claim ../X.id"),
]


def test_a_broken_file_is_one_line_that_names_the_claim(tmp_path: Path) -> None:
    for changes, words in [each[1:] for each in BROKEN]:
        own = {key: value for key, value in claim(**changes).items() if value is not None}
        with pytest.raises(UserError, match=words) as refused:
            papers(folder(tmp_path, own))
        assert str(refused.value).startswith(f"{tmp_path}/X.toml: ")
        assert len(str(refused.value).splitlines()) == 1


def test_two_claims_have_two_names(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="X-1: two claims of that id"):
        papers(folder(tmp_path, claim(), claim()))
    folder(tmp_path)
    (tmp_path / "Y.toml").write_text((tmp_path / "X.toml").read_text(), encoding="utf-8")
    with pytest.raises(UserError, match=r"Y\.toml: claim X-1: X\.toml has a claim of that id"):
        papers(tmp_path)


# What is noticed of evidence.


def test_evidence_that_is_as_it_was_written_has_no_fault(tmp_path: Path) -> None:
    found, _ = measured(tmp_path)
    assert list(claim_ledger.faults(found)) == []
    (entry,) = claim_ledger.entries(found)
    assert entry.status == REPRODUCED


def test_any_change_of_evidence_is_noticed(tmp_path: Path) -> None:
    for key in ["values", "verdict", "test", "seconds", "data", "code", "source", "claim"]:
        found, path = measured(tmp_path)
        content = json.loads(path.read_text())
        changed = {"values": [[0.4, 0.5, 0.5, 0.5, 0.61]], "seconds": 2.0, "data": {}, "source": {}}
        path.write_text(json.dumps({**content, key: changed.get(key, "other")}))
        (fault,) = claim_ledger.faults(found)
        assert "its digest is another" in fault
        with pytest.raises(UserError, match="its digest is another"):
            claim_ledger.entries(found)


def rewritten(path: Path, **changes: Any) -> None:
    """Change evidence and its digest too."""
    content = json.loads(path.read_text())
    del content["digest"]
    content |= changes
    path.write_text(json.dumps({**content, "digest": claim_ledger._digest(content)}))


def test_a_verdict_that_does_not_follow_is_noticed_whatever_the_digest(tmp_path: Path) -> None:
    found, path = measured(tmp_path)
    rewritten(path, values=[OUTSIDE])
    assert list(claim_ledger.faults(found)) == ["X-1: recorded as reproduced, and not reproduced by its evidence"]
    (entry,) = claim_ledger.entries(found)
    assert entry.status == NOT_REPRODUCED


def test_evidence_of_another_shape_is_noticed(tmp_path: Path) -> None:
    for values in [[], [[]], [INSIDE, INSIDE], [[math.nan]], "x", [["x"]], 3]:
        found, path = measured(tmp_path)
        rewritten(path, values=values)
        assert len(list(claim_ledger.faults(found))) == 1


def test_evidence_of_another_test_counts_for_nothing(tmp_path: Path) -> None:
    found, _ = measured(tmp_path)
    (tmp_path / "X.toml").write_text((tmp_path / "X.toml").read_text().replace('"gap"', '"2 * gap"'), encoding="utf-8")
    found = papers(tmp_path)
    assert list(claim_ledger.faults(found)) == ["X-1: its evidence was measured by another test; measure it again"]
    (entry,) = claim_ledger.entries(found)
    assert entry.status == UNPLAYED


def test_a_region_that_was_moved_is_noticed(tmp_path: Path) -> None:
    measured(tmp_path)
    text = (tmp_path / "X.toml").read_text()
    moved = text.replace("0.0,", "2.0,").replace("1.0,", "3.0,")
    assert moved != text
    (tmp_path / "X.toml").write_text(moved, encoding="utf-8")
    assert list(claim_ledger.faults(papers(tmp_path))) == [
        "X-1: recorded as reproduced, and not reproduced by its evidence"
    ]


def test_evidence_that_belongs_to_no_claim_is_noticed(tmp_path: Path) -> None:
    found, path = measured(tmp_path)
    path.with_name("X-9.json").write_text("{}")
    assert list(claim_ledger.faults(found)) == ["X-9: evidence of a claim that is not tested"]


def found_otherwise() -> CheckResult:
    return CheckResult("", "a case", {"cases": 3})


def found_three() -> CheckResult:
    return CheckResult("in three cases", "", {"cases": 3})


def found_four() -> CheckResult:
    return CheckResult("in four cases", "", {"cases": 4})


def test_a_check_is_executed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for again, faulty in [(found_three, 0), (found_four, 1), (found_otherwise, 1)]:
        found = papers(folder(tmp_path, claim(test={"check": "attribute_reveal:alone"})))
        paper, own = find(found, "X-1")
        monkeypatch.setattr("sim.papers.checks.attribute_reveal.alone", found_three)
        claim_ledger.write(paper.evidence, play.checked(own, {}))
        monkeypatch.setattr("sim.papers.checks.attribute_reveal.alone", again)
        assert len(list(claim_ledger.faults(found))) == faulty


# What is shipped.


def test_the_shipped_claims_are_many_and_most_have_a_verdict() -> None:
    found = claim_ledger.entries(papers())
    assert len(found) >= 150
    assert sum(entry.status in (REPRODUCED, NOT_REPRODUCED, UNDECIDED, REFUTED) for entry in found) >= 110
    assert {entry.status for entry in found} >= {REFUTED, NOT_TESTED, LOST, UNPLAYABLE}
    assert {entry.status for entry in found} <= set(STATUSES)


def test_every_shipped_test_can_be_run() -> None:
    files = dict.fromkeys(("lsac", "lsac-coded"), Path("FILE"))
    for paper in papers():
        for own in paper.claims:
            if own.test is None:
                continue
            if own.test.play is not None:
                assert play.scenario(own.test, files).cells, own.id
            elif own.test.table is None:
                assert callable(claim_ledger.function(own.test.check or own.test.measure or "")), own.id
            assert own.figure is None or callable(claim_ledger.function(own.figure)), own.id


def test_every_check_is_a_claims() -> None:
    """A function that no claim names is never executed."""
    named = {
        name.rpartition(":")[2]
        for paper in papers()
        for own in paper.claims
        for name in ((own.test.check, own.test.measure, own.figure) if own.test is not None else ())
        if name is not None
    }
    for path in (SHIPPED / "checks").glob("[a-z]*.py"):
        module = claim_ledger.importlib.import_module(f"sim.papers.checks.{path.stem}")
        public = {
            name
            for name, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", "") == module.__name__ and not name.startswith("_")
        }
        assert public <= named


def test_the_page_of_claims_is_current() -> None:
    page = (ROOT / "docs" / "claims-table.md").read_text(encoding="utf-8")
    assert page == markdown(claim_ledger.entries(papers())), "run: fairwall papers list --page docs/claims-table.md"


def test_the_measured_tables_of_users_files_are_named() -> None:
    """Evidence of a run on a file of the user's says so: its digest stands there by the file's name."""
    for entry in claim_ledger.entries(papers()):
        if entry.claim.test is not None and entry.evidence is not None:
            assert set(entry.claim.test.data) <= entry.evidence.data.keys(), entry.claim.id
