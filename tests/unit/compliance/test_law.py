"""What a law asks is data: the shipped presets are sound, a user's own is read whole or refused in one line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
import tomli_w

from compliance.deployment.policy import law
from compliance.deployment.policy.reading import parse
from tests.unit.compliance.test_policy import EXAMPLE, Values, read, refused, written

PAGE = (EXAMPLE.parent / "law.md").read_text()
SECTION, OWN = (tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
GROUPS = {"race": ["a", "b", "other"], "sex": ["f", "m", "unknown"]}


def policy(**changes: Values) -> Values:
    """The example, about groups, with its sections changed."""
    example = tomllib.loads((EXAMPLE / "policy.toml").read_text())
    example["data"]["groups"] = GROUPS
    return example | {name: example.get(name, {}) | section for name, section in changes.items()}


@pytest.mark.parametrize("name", law.shipped())
def test_a_shipped_preset_has_dates_and_sources_and_serves(tmp_path: Path, name: str) -> None:
    asks = law.read(name, tmp_path).asks
    assert asks.checked == date(2026, 11, 27)
    assert all(source.date <= asks.checked and source.url.startswith("https://") for source in asks.sources)
    assert any("our reading" in text.lower() for text in asks.noise)
    assert not re.search(r"\b(you must|complies|is compliant|is lawful\.)", " ".join((*asks.wording, *asks.noise)))
    assert f"| `{name}`: " in PAGE
    found = read(written(tmp_path, policy(law={"preset": name}))).law
    assert found is not None
    assert found.preset.name == name
    # Nothing that is served depends on it.
    with_it, without = (read(written(tmp_path, policy(**more))) for more in ({"law": {"preset": name}}, {}))
    assert with_it.model_copy(update={"law": None}) == without


def test_what_each_rule_asks_is_what_its_source_says() -> None:
    asks = {name: law.read(name, Path()).asks for name in law.shipped()}
    assert {name: [table.by for table in one.tables] for name, one in asks.items()} == {
        "nyc-ll144": [("sex",), ("race",), ("race", "sex")],
        "eeoc-four-fifths": [("sex",), ("race",)],
        "nj-disparate-impact": [],
        "eu-ai-act-10-5": [],
    }
    assert {name: one.threshold for name, one in asks.items() if one.threshold} == {"eeoc-four-fifths": 0.8}
    assert {name: one.small for name, one in asks.items() if one.small} == {"nyc-ll144": 0.02}
    assert [one.asked[:3] for one in asks["eu-ai-act-10-5"].safeguards] == [f"({letter})" for letter in "abcdef"]


def test_a_preset_of_ones_own_lies_beside_the_policy(tmp_path: Path) -> None:
    assert OWN.keys() == law.PresetRules.model_fields.keys(), "the page shows every key"
    (tmp_path / "laws").mkdir()
    (tmp_path / "laws" / "ours.toml").write_text(tomli_w.dumps(OWN))
    values = policy(law={"preset": "laws/ours.toml", "columns": {"sex": "gender"}})
    values["data"]["groups"] = {"gender": ["f", "m"]}
    found = read(written(tmp_path, values)).law
    assert found is not None
    assert (found.preset.name, found.preset.asks.threshold, found.by(["sex"])) == ("ours.toml", 0.9, ("gender",))
    assert read(written(tmp_path, policy(law=SECTION["law"] | {"columns": {}}))).law


WITHOUT = {"data": {"groups": {}}}
LACKING: dict[str, tuple[Values, str]] = {
    "another name": (
        {"law": {"preset": "nyc"}},
        "law.preset: must be one of eeoc-four-fifths, eu-ai-act-10-5, nj-disparate-impact, nyc-ll144, or a file that",
    ),
    "a way out": ({"law": {"preset": "../nyc-ll144"}}, "law.preset: must be one of eeoc-four-fifths"),
    "no name": ({"law": {"preset": 144}}, "law.preset: must be the name of a preset, or a file"),
    "a typo": ({"law": {"preset": "nyc-ll144", "colums": {}}}, "law.colums: unknown key; did you mean columns?"),
    "no file": ({"law": {"preset": "mine.toml"}}, "law.preset: mine.toml: cannot be read: No such file or directory"),
    "no metric": (
        {"law": {"preset": "nyc-ll144"}, "audit": {"metrics": ["eo"]}},
        "audit.metrics: must have one of sp, abs_sp, di, without which preset nyc-ll144 has no tables",
    ),
    "no group": (
        {"law": {"preset": "eeoc-four-fifths"}, "data": {"groups": {"sex": ["f", "m"]}}},
        "data.groups: has no race, by which preset eeoc-four-fifths has a table; law.columns names another column",
    ),
    "no groups": ({"law": {"preset": "nj-disparate-impact"}, **WITHOUT}, "data.groups: is missing: tables of preset"),
    "a column that is not there": (
        {"law": {"preset": "nyc-ll144", "columns": {"race": "ethnicity"}}},
        "data.groups: has no ethnicity, by which preset nyc-ll144 has a table",
    ),
    "a column for nothing": (
        {"law": {"preset": "nyc-ll144", "columns": {"age": "years"}}},
        "law.columns.age: preset nyc-ll144 has no table by it, but by race, sex",
    ),
    "one column for two": (
        {"law": {"preset": "nyc-ll144", "columns": {"race": "sex"}}},
        "law.columns: two of race, sex, by which preset nyc-ll144 has tables, are one column",
    ),
    "more left out than the rule lets be": (
        {"law": {"preset": "nyc-ll144"}, "data": {"least_share": 0.05}},
        "data.least_share: must be at most 0.02, as preset nyc-ll144 says, not 0.05",
    ),
}


def test_a_policy_that_lacks_what_a_law_asks_is_refused(tmp_path: Path) -> None:
    for changes, why in LACKING.values():
        assert refused(tmp_path, policy(**changes)).startswith(why)


def test_safeguards_need_no_groups_and_each_data_set_has_a_law_of_its_own(tmp_path: Path) -> None:
    assert read(written(tmp_path, policy(law={"preset": "eu-ai-act-10-5"}, **WITHOUT))).law
    values = policy(law={"preset": "nyc-ll144"})
    deployment = values.pop("deployment")
    several = {"deployment": deployment, "datasets": {"loans": values, "cards": values | {"law": {"preset": "x"}}}}
    del several["datasets"]["cards"]["law"]
    policies = parse(tomli_w.dumps(several).encode(), tmp_path / "policy.toml")
    assert [each.law is None for each in policies.datasets.values()] == [False, True]


BAD: dict[str, tuple[Callable[[Values], object], str]] = {
    "a typo": (lambda own: own.update(tresholds=0.8), "tresholds: unknown key"),
    "a key over lines": (lambda own: own.update({"a\nb": 1}), "a?b: unknown key"),
    "no source": (lambda own: own.update(sources=[]), "sources: Tuple should have at least 1 item"),
    "a source without a date": (lambda own: own["sources"][0].pop("date"), "sources.0.date: is missing"),
    "a date in words": (lambda own: own.update(checked="27 November"), "checked: Input should be a valid date"),
    "a date that is a number": (lambda own: own.update(checked=0), "checked: Input should be a valid date"),
    "nothing about noise": (lambda own: own.update(noise=[]), "noise: Tuple should have at least 1 item"),
    "no address": (lambda own: own["sources"][0].update(url="javascript:x"), "sources.0.url: must begin with https://"),
    "a metric that there is not": (lambda own: own.update(metrics=["fairness"]), "metrics.0: must be one of sp, "),
    "a measure that there is not": (lambda own: own.update(measures=["precision"]), "measures.0: Input should be"),
    "a threshold of nothing": (lambda own: own.update(threshold=0.0), "threshold: Input should be greater than 0"),
    "a threshold of no number": (lambda own: own.update(threshold=float("nan")), "threshold: Input should be"),
    "a table by nothing": (lambda own: own["tables"][0].update(by=[]), "tables.0.by: Tuple should have at least 1"),
    "a table twice by one": (lambda own: own["tables"][0].update(by=["sex", "sex"]), "tables.0.by: must have nothing"),
    "a text of lines": (lambda own: own.update(title="a\nb"), "title: must be one line"),
    "a terminal's colours": (lambda own: own.update(title="\x1b[2J"), "title: must be one line"),
    "a long text": (lambda own: own.update(title="a" * 2001), "title: String should have at most 2000 characters"),
}


def test_a_preset_that_is_none_is_refused_in_one_line(tmp_path: Path) -> None:
    for spoil, why in BAD.values():
        own = tomllib.loads(tomli_w.dumps(OWN))
        spoil(own)
        (tmp_path / "ours.toml").write_text(tomli_w.dumps(own))
        said = refused(tmp_path, policy(law={"preset": "ours.toml"}))
        assert said.startswith(f"law.preset: ours.toml: {why}")
        assert said.isprintable()
        assert "27 November" not in said


def test_a_file_that_is_no_preset_is_refused(tmp_path: Path) -> None:
    for content, why in ((b"\xff", "not UTF-8 text"), (b"= 1", "not valid TOML: "), (b"", "title: is missing")):
        (tmp_path / "ours.toml").write_bytes(content)
        said = refused(tmp_path, policy(law={"preset": "ours.toml"}))
        assert said.startswith(f"law.preset: ours.toml: {why}")
