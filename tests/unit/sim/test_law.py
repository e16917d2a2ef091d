"""A page holds its tables against what a law asks, and says no more than an interval does."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from compliance.deployment.policy.reading import parse
from sim.attestation import law, page, rates
from tests.unit.compliance.test_law import OWN, policy

Told = dict[str, Any]
RACE_AND_SEX = ("race", "sex")


def stated(folder: Path, preset: str, **changes: Any) -> list[Told]:
    values = policy(law={"preset": preset}, **changes)
    return law.stated(parse(tomli_w.dumps(values).encode(), folder / "policy.toml"))


def request(by: tuple[str, ...], ratio: tuple[float, float, float], number: int = 1, models: int = 1) -> Told:
    """What a ledger has of one request whose worst ratios are all this one."""
    ways = [(name,) for name in by] + ([by] if len(by) > 1 else [])
    ends = {f"ratio{end}": value for end, value in zip(("", "_low", "_high"), ratio, strict=True)}
    told = {f"{name}{end}": 1.0 for name in ("rate", "difference") for end in ("", "_low", "_high")}
    people = {"people": 50.0, "people_low": 45.0, "people_high": 55.0, "below_four_fifths": 0.5, "p_value": 0.5}
    rows, worst = [], []
    for over in ways:
        for model in range(1, models + 1):
            common = {"over": [*over], "measure": "selection_rate", "model": model, **ends}
            for group, compared in (("a", True), ("b", True), ("unknown", False), ("few", False)):
                rows.append({**common, **told, **people, "group": [group] * len(over), "compared": compared})
            worst.append({**common, "least": ["<i>b"], "most": ["a"], "below_four_fifths": 0.5})
    one = {"dataset": "loans", "developer": "alice", "request": f"r{number}", "record": number, "subject": f"r{number}"}
    return {**one, "by": [*by], "leastShare": 0.02, "rates": rows, "worst": worst}


def text(account: Told) -> str:
    """All that the sections say, in their order."""
    said = []
    for section in law.sections(account):
        said += [section.heading, *section.before, *section.conclusions, *section.after]
        if section.table is not None:
            said += ["|".join(row) for row in zip(*(one.texts for one in section.table.columns), strict=True)]
    return "\n".join(said)


def account(laws: list[Told], *requests: Told) -> Told:
    return json.loads(json.dumps({"law": laws, "byGroup": [*requests]}))  # type: ignore[no-any-return]


def test_a_ratio_is_judged_where_its_whole_interval_is_on_one_side(tmp_path: Path) -> None:
    for ratio, said in [
        ((0.7, 0.6, 0.79), "yes"),
        ((0.79, 0.7, 0.8), "open"),
        ((0.9, 0.8, 0.95), "no"),
        ((0.9, 0.79, 1.0), "open"),
    ]:
        told = text(account(stated(tmp_path, "eeoc-four-fifths"), request(RACE_AND_SEX, ratio)))
        assert re.findall(r"(?m)^by (sex|race)\|.*\|(yes|no|open)\|", told) == [("sex", said), ("race", said)]
        assert "Tables that the rule asks for: 2; here: 2." in told


def test_a_rule_without_a_threshold_judges_nothing(tmp_path: Path) -> None:
    for preset in ("nyc-ll144", "nj-disparate-impact"):
        laws = stated(tmp_path, preset)
        main, *_ = law.sections(account(laws, request(RACE_AND_SEX, (0.5, 0.4, 0.6))))
        assert main.table is not None
        assert not [column for column in main.table.columns if "below" in column.head]
        assert "0.5 [0.4 to 0.6]: <i>b over a" in main.table.columns[3].texts[0]
        assert len(main.table.columns[0].texts) == 3


def test_what_is_missing_is_named_with_the_call_that_makes_it(tmp_path: Path) -> None:
    laws = stated(tmp_path, "nyc-ll144")
    nothing, by_sex = text(account(laws)), text(account(laws, request(("sex",), (0.9, 0.8, 1.0))))
    assert "Tables that the rule asks for: 3; here: 0." in nothing
    call = "audits.by_group(predictions, by=('race', 'sex'), epsilon=...)."
    assert f"Not here: by sex; by race; by race and sex. A developer has them made by {call}" in nothing
    assert f"Not here: by race; by race and sex. A developer has them made by {call}" in by_sex
    assert "Not here" not in text(account(laws, request(("sex", "race"), (0.9, 0.8, 1.0)))), "in whatever order"
    other = request(RACE_AND_SEX, (0.9, 0.8, 1.0)) | {"dataset": "cards"}
    assert text(account(laws, other)) == nothing, "another data set's tables are not this one's"
    for row in (scores := request(RACE_AND_SEX, (0.9, 0.8, 1.0)))["rates"]:
        row["measure"] = "mean_score"
    assert text(account(laws, scores)) == nothing, "nor are another measure's"


def test_what_is_known_by_probabilities_is_named(tmp_path: Path) -> None:
    bought = request(RACE_AND_SEX, (0.9, 0.8, 1.0)) | {"byProbabilities": {"attribute": "race", "golden": 200}}
    for told, there in ((bought, True), (request(("sex",), (0.9, 0.8, 1.0)), False)):
        main, *_ = law.sections(account(stated(tmp_path, "eeoc-four-fifths"), told))
        assert main.table is not None
        note = "Known by probabilities, set right by a golden sample: race."
        assert any(each.startswith(note) for each in main.table.notes) == there


def test_several_models_are_judged_one_by_one(tmp_path: Path) -> None:
    bought = request(("sex",), (0.9, 0.85, 1.0), models=3)
    bought["worst"][1] |= {"ratio": 0.5, "ratio_low": 0.4, "ratio_high": 0.6}
    told = text(account(stated(tmp_path, "eeoc-four-fifths"), bought))
    assert "0.5 [0.4 to 0.6]: <i>b over a, model 2 of 3|yes: 1 model, no: 2 models|" in told


def test_who_is_in_no_ratio_is_told_with_their_numbers(tmp_path: Path) -> None:
    bought = request(("race",), (0.9, 0.8, 1.0))
    told = text(account(stated(tmp_path, "nyc-ll144"), bought))
    assert "few|by race|next to nobody|" in text(account(stated(tmp_path, "nyc-ll144"), bought | {"leastShare": 0.0}))
    assert "unknown|by race|unknown|50 [45 to 55]|25.0%|" in told
    assert "few|by race|small: below 2%|50 [45 to 55]|25.0%|" in told


def test_links_lead_to_the_tables_of_the_page_alone(tmp_path: Path) -> None:
    """The ledger may have more requests than the page has tables of."""
    many = [request(RACE_AND_SEX, (0.9, 0.8, 1.0), number) for number in range(1, rates.REQUESTS_MAX + 3)]
    told = account(stated(tmp_path, "nyc-ll144"), request(("sex",), (0.5, 0.4, 0.6), 0), *many)
    main, *_ = law.sections(told)
    assert main.table is not None
    links = [link for link in main.table.links if link]
    assert len(set(links)) == len(links) == 3 * rates.REQUESTS_MAX
    assert set(links) == {section.name for section in rates.sections(told)}


@pytest.mark.parametrize("preset", ["nyc-ll144", "eeoc-four-fifths", "nj-disparate-impact", "eu-ai-act-10-5"])
def test_no_section_is_without_its_day_its_sources_and_no_legal_advice(tmp_path: Path, preset: str) -> None:
    (one,) = stated(tmp_path, preset)
    told = text(account([one]))
    assert told.count("No legal advice") == 2
    assert told.count("hecked on 2026-11-27") == 2
    assert all(f"{each['dated']} {each['date']}" in told and each["read"] in told for each in one["sources"])
    assert all(said in told for said in (*one["noise"], *one["wording"], *one["not_said"]))


def test_what_a_users_preset_says_is_no_markup(tmp_path: Path) -> None:
    own = tomllib.loads(tomli_w.dumps(OWN))
    evil = "<script>alert(1)</script>\"'><img src=x>{{ 7 * 7 }}"
    own |= {key: [evil] for key in ("wording", "noise", "not_said")} | {"title": evil, "jurisdiction": evil}
    own["tables"][0]["categories"] = evil
    own["safeguards"] = [dict.fromkeys(("asked", "has", "lacks"), evil)]
    own["sources"][0] |= {"title": evil, "url": 'https://x/"onclick="alert(1)', "read": evil}
    (tmp_path / "ours.toml").write_text(tomli_w.dumps(own))
    (one,) = stated(tmp_path, "ours.toml", data={"least_share": 0.02})
    told = account([one], request(("sex",), (0.9, 0.8, 1.0)))
    shown = page.fill(
        "account.html.j2",
        **dict.fromkeys(("name", "about", "part"), ""),
        **dict.fromkeys(("findings", "settings", "limits", "checked", "provenance"), ()),
        told=law.sections(told),
    )
    assert "<script" not in shown
    assert "<img" not in shown
    assert "<i>b" not in shown
    assert "{{ 7 * 7 }}" in shown
    assert not re.search(r"<[^>]*onclick", shown)
    assert re.search(r'<a href="#rates-0">by sex</a>', shown)


def test_a_page_of_before_has_no_law() -> None:
    assert law.sections({"byGroup": []}) == law.findings({"byGroup": []}) == []
