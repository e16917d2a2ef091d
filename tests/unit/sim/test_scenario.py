"""Scenario files: what is read, what ``--set`` does to it, and what is refused in one line."""

from __future__ import annotations

import datetime
import json
import math
import tomllib
from collections.abc import Callable, Mapping
from copy import deepcopy as copy_of
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import example, given
from hypothesis import strategies as st

from developer.reveal.strategies import STRATEGIES
from sim.games import lay_out, read
from sim.games.release.scenario import CONTROLS, UNIFORM_AT_K_BASED
from sim.report.cells import paper_figure
from sim.scenarios.scenario import as_values
from sim.scenarios.sweep import ScenarioError, Sweep, cells_of, shipped

PLAYABLE: Mapping[str, Mapping[str, Any]] = {
    "scenario": {"name": "mine", "game": "reveal"},
    "data": {"source": "adult", "test_size": 50},
    "compliance": {"mechanism": "laplace", "epsilon": 1.0},
    "developer": {"strategy": "sensing", "queries": 5},
}
"""The shortest scenario that can be played; its sections have every needed key."""

SYNTHETIC = {"data.source": "synthetic", "data.n": 50, "data.n0": 5, "data.scores": "uniform", "data.test_size": None}
KEYS = sorted(
    f"{section}.{key}"
    for section, keys in {
        "scenario": "name game about trials seed",
        "data": "source protected advantaged disadvantaged label positive drop test_size n0 train_share n scores "
        "hidden",
        "compliance": "metric mechanism epsilon delta noise bounding",
        "developer": "strategy decoder queries perturbation",
        "adversary": "attack probes",
    }.items()
    for key in keys.split()
)


def values(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The playable scenario with dotted keys changed, or taken out where the value is None."""
    changed = {section: dict(keys) for section, keys in PLAYABLE.items()}
    for dotted, value in changes.items():
        section, _, key = dotted.partition(".")
        if not key:
            changed[section] = value
        elif value is None:
            changed[section].pop(key, None)
        else:
            changed.setdefault(section, {})[key] = value
    return changed


def plan_of(**changes: Any) -> Sweep:
    return lay_out(values({key.replace("__", "."): value for key, value in changes.items()}), "mine.toml")


def refusal(reading: Callable[[], object]) -> str:
    with pytest.raises(ScenarioError) as refused:
        reading()
    text = str(refused.value)
    assert len(text.splitlines()) == 1, text
    return text


# What is read.


def test_every_shipped_scenario_reads_under_its_own_name_with_one_cell_a_combination() -> None:
    for name in shipped():
        found = read(name)
        assert found.scenario.scenario.name == name
        assert found.scenario.scenario.about, name
        sweep = found.scenario.sweep
        grids = (sweep,) if isinstance(sweep, dict) else sweep
        assert len(found.cells) == sum(math.prod(len(axis) for axis in grid.values()) for grid in grids), name
        assert len({repr(cell.swept) for cell in found.cells}) == len(found.cells), name
        for figure in found.scenario.paper:
            assert [cell for cell in found.cells if figure.where.items() <= cell.swept.items()], name


def test_what_a_run_keeps_of_a_scenario_reads_as_the_same_plan() -> None:
    for name in ("demo", "conceal-attacked", "dia-german", "fft-mixture", "ldp-demo", "private-fair-adult"):
        found = read(name)
        again = lay_out(tomllib.loads(tomli_w.dumps(as_values(found.scenario))), "scenario.toml")
        assert again == found, name
        assert again.digest == found.digest


def test_every_table_of_the_release_game_has_every_control() -> None:
    for name in (name for name in shipped() if name.startswith("ldp-")):
        cells = [cell.scenario.release for cell in read(name).cells]
        assert {cell.protocol for cell in cells} >= set(CONTROLS)
        played: dict[str, set[tuple[str, float]]] = {}
        for cell in cells:
            played.setdefault(cell.split, set()).add((cell.protocol, cell.epsilon))
        # One column alone has all of epsilon, however it is split; and a mixture is about shares of another kind.
        assert ("k-based" in played) == (name not in ("ldp-optimum", "ldp-mixture"))
        assert played.get("k-based") == played.get(UNIFORM_AT_K_BASED)


def test_a_file_is_read_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(tomli_w.dumps(PLAYABLE), encoding="utf-8")
    assert read(str(file)) == plan_of()


def test_a_swept_key_need_not_stand_in_its_section() -> None:
    found = plan_of(developer__queries=None, sweep={"developer.queries": [3, 4]})
    assert [cell.scenario.developer.queries for cell in found.cells] == [3, 4]


def test_cells_vary_the_last_axis_fastest_and_differ_in_the_swept_keys_alone() -> None:
    found = plan_of(sweep={"developer.queries": [3, 4], "compliance.epsilon": [1.0, "inf"]})
    assert [tuple(cell.swept.values()) for cell in found.cells] == [(3, 1.0), (3, "inf"), (4, 1.0), (4, "inf")]
    for cell in found.cells:
        assert cell.scenario.queries == cell.swept["developer.queries"]
        assert cell.scenario.epsilon == float(cell.swept["compliance.epsilon"])
        assert cell.scenario.data == found.scenario.data


def test_an_infinite_number_in_a_sweep_is_spelled_out_however_it_was_set() -> None:
    found = plan_of(sweep={"compliance.epsilon": [math.inf, 1.0]})
    assert as_values(found.scenario)["sweep"] == {"compliance.epsilon": ["inf", 1.0]}
    assert [cell.swept["compliance.epsilon"] for cell in found.cells] == ["inf", 1.0]


def test_exact_answers_have_an_infinite_budget_and_need_not_say_so() -> None:
    assert plan_of(compliance__mechanism="exact", compliance__epsilon=None).scenario.epsilon == math.inf


@pytest.mark.parametrize(
    ("strategy", "metric", "asked"),
    [("single", "sp", 1), ("pair", "eo", 2), ("linear", "sp", "n"), ("absolute", "abs_sp", "n")],
)
def test_a_strategy_with_one_natural_number_of_queries_asks_it_unbidden(
    strategy: str, metric: str, asked: int | str
) -> None:
    found = plan_of(developer={"strategy": strategy}, compliance__metric=metric)
    assert found.scenario.queries == asked


# --set


def test_setting_a_swept_key_replaces_its_axis() -> None:
    found = read("conceal-adult-100", ["compliance.epsilon=10"])
    assert len(found.cells) == 4
    assert all(cell.scenario.epsilon == 10 and "compliance.epsilon" not in cell.swept for cell in found.cells)


def test_setting_a_swept_key_to_a_list_replaces_its_axis_by_the_list() -> None:
    found = read("conceal-adult-100", ["developer.queries=[7, 8, 9]", "compliance.mechanism=laplace"])
    assert [cell.scenario.queries for cell in found.cells] == [7] * 4 + [8] * 4 + [9] * 4


def test_setting_another_key_to_a_list_sweeps_it_too() -> None:
    before, found = read("demo"), read("demo", ["developer.perturbation=[0.1, 0.2]"])
    assert len(found.cells) == 2 * len(before.cells)
    assert {cell.scenario.developer.perturbation for cell in found.cells} == {0.1, 0.2}


def test_the_last_setting_of_a_key_counts() -> None:
    settings = ["compliance.epsilon=1", "developer.strategy=best"]
    settings += ["developer.queries=[1, 2]", "developer.queries=4", "developer.queries=[3]"]
    assert [cell.scenario.queries for cell in read("demo", settings).cells] == [3]


@pytest.mark.parametrize("name", ["demo", "conceal-adult-100", "hidden-adult-100"])
@pytest.mark.parametrize("swept", [False, True])
@pytest.mark.parametrize("strategy", ["sensing", "best", "linear", "absolute"])
def test_a_strategy_that_is_set_brings_its_own_decoder(name: str, strategy: str, swept: bool) -> None:
    own = {each: next(iter(STRATEGIES[each].decoders), "") for each in (strategy, *(["best"] if swept else []))}
    played = read(name).cells[0].scenario
    if not swept and played.developer.strategy == strategy:
        own[strategy] = played.decoder  # which its file names
    try:
        found = read(name, [f"developer.strategy={json.dumps(list(own)) if swept else strategy}"])
    except ScenarioError as error:
        # Its queries, metric or mechanism may not go with it.
        refused = str(error)
    else:
        refused = ""
        assert {cell.scenario.developer.strategy: cell.scenario.decoder for cell in found.cells} == own
        # What a run keeps says which.
        kept = as_values(found.scenario)
        assert kept["developer"].get("decoder", "own") in ("own" if swept else own[strategy], "own")
        assert [cell.scenario.decoder for cell in lay_out(kept, "scenario.toml").cells] == [
            cell.scenario.decoder for cell in found.cells
        ]
    assert "developer.decoder" not in refused


@pytest.mark.parametrize(("decoder", "played"), [("ep", {"ep"}), ('["l1", "own"]', {"l1", "best"})])
def test_a_decoder_that_is_set_is_kept(decoder: str, played: set[str]) -> None:
    settings = ["developer.strategy=best", f"developer.decoder={decoder}"]
    for order in (settings, settings[::-1]):
        assert {cell.scenario.decoder for cell in read("conceal-attacked", order).cells} == played


@pytest.mark.parametrize("setting", ["developer.queries=9", "developer.strategy=sensing"])
def test_a_decoder_of_a_file_stays_where_no_other_strategy_is_set(setting: str) -> None:
    found = read("conceal-adult-100", [setting])
    assert {(cell.scenario.decoder, cell.scenario.perturbation) for cell in found.cells} == {("l1", 0.1)}
    assert found.notes == ()


def test_what_a_file_chose_for_its_strategy_goes_with_it_with_a_line_each() -> None:
    found = read("conceal-adult-100", ["developer.strategy=best"])
    assert {(cell.scenario.decoder, cell.scenario.perturbation) for cell in found.cells} == {("best", 1.0)}
    assert found.notes == (
        "developer.decoder: as best has it, in place of l1 in conceal-adult-100.toml; --set keeps that",
        "developer.perturbation: as best has it, in place of 0.1 in conceal-adult-100.toml; --set keeps that",
    )
    kept = read("conceal-adult-100", ["developer.strategy=best", "developer.decoder=l1", "developer.perturbation=0.1"])
    assert {(cell.scenario.decoder, cell.scenario.perturbation) for cell in kept.cells} == {("l1", 0.1)}
    assert kept.notes == ()
    # Swept, how near rows are to the base model is what the scenario asks.
    asked = read("limit-adult-100", ["developer.strategy=best", "developer.queries=needed"])
    assert {cell.scenario.perturbation for cell in asked.cells} == {1.0, 0.1}
    assert len(asked.notes) == 1


@pytest.mark.parametrize(("setting", "drop"), [('data.drop=["age", "sex"]', ("age", "sex")), ("data.drop=[]", ())])
def test_a_key_that_is_a_list_by_nature_is_set_and_not_swept(setting: str, drop: tuple[str, ...]) -> None:
    found = read("linear-german", [setting])
    assert len(found.cells) == 1
    assert found.scenario.data.drop == drop


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ('data.source="compas"', "compas"),
        ("data.source='my people.csv'", "my people.csv"),
        ("data.source=my people.csv", "my people.csv"),
        ("data.positive=>50K", ">50K"),
        ("data.label=a=b", "a=b"),
        ("scenario.about=", ""),
        (" scenario.seed = 3 ", 3),
        ("data.train_share=0", 0.0),
        ("compliance.epsilon=2.5e-1", 0.25),
        ("compliance.epsilon=inf", math.inf),
        ('compliance.epsilon="inf"', math.inf),
        ("developer.queries=n-1", "n-1"),
    ],
)
def test_a_set_value_is_toml_or_else_a_bare_string(setting: str, value: object) -> None:
    base = "linear-german" if "queries" in setting else "demo"
    section, _, key = setting.partition("=")[0].strip().partition(".")
    assert getattr(getattr(read(base, [setting]).scenario, section), key) == value


# Printed figures.


def _unlike(found: Sweep, key: str) -> Any:
    """Find a value of a key that the scenario can be read with, and that none of its cells has."""
    section, _, field = key.partition(".")
    there = {json.dumps(as_values(cell.scenario).get(section, {}).get(field)) for cell in found.cells}
    others = {
        "data.source": ["compas", "german", "synthetic"],
        "data.protected": ["sex", "age", "relationship"],
        "data.advantaged": ["Other"],
        "data.disadvantaged": ["Other"],
        "data.label": ["sex"],
        "data.positive": ["no"],
        "data.drop": [["age"]],
        "compliance.metric": ["abs_sp", "eo"],
        "compliance.mechanism": ["cauchy", "counts", "exact", "gaussian"],
        "compliance.epsilon": [77.0],
        "compliance.bounding": ["clamp", "truncate"],
        "compliance.precision": [3],
        "developer.strategy": ["best", "gaussian", "random-binary"],
        "developer.decoder": ["ep", "box"],
        "developer.knows": [["precision", "n0"]],
    }.get(key, [0.37, 0.123, 6, 46, 460, True])
    for other in others:
        if json.dumps(other) not in there and read_or_none(found.scenario.scenario.name, key, other):
            return other
    return None


def read_or_none(name: str, key: str, value: Any) -> Sweep | None:
    try:
        return read(name, [f"{key}={json.dumps(value)}"])
    except ScenarioError:
        return None


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["private-fair-adult", "conceal-adult-100", "dia-lsac-sex"])
def test_printed_figures_stand_beside_no_run_that_was_set_to_play_something_else(name: str) -> None:
    found = read(name)
    tried = 0
    for section in ("data", "compliance", "developer", "training"):
        for field in as_values(found.scenario).get(section, {}):
            key = f"{section}.{field}"
            other = _unlike(found, key) if key != "compliance.noise" else None
            if other is not None:
                tried += 1
                played = read(name, [f"{key}={json.dumps(other)}"])
                kept = lay_out(as_values(played.scenario), "scenario.toml")
                for cell in (*played.cells, *kept.cells):
                    assert paper_figure(cell.scenario) is None, (key, other)
    assert tried >= 4
    for key in ("scenario.trials=3", "scenario.seed=5", "scenario.record=none", "faults.per_trial=1"):
        same = read(name, [key])
        assert [paper_figure(cell.scenario) for cell in same.cells] == [
            paper_figure(cell.scenario) for cell in found.cells
        ]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["conceal-adult-100", "private-fair-adult", "dia-lsac-sex"])
def test_printed_figures_stand_beside_no_copy_of_a_file_that_plays_something_else(name: str, tmp_path: Path) -> None:
    found, copy = read(name), tmp_path / "mine.toml"
    base = [paper_figure(cell.scenario) for cell in found.cells]
    assert any(base)
    values = as_values(found.scenario)
    values["scenario"] |= {"name": "mine", "seed": 5, "trials": 3}
    for key in ("", "data.source", "compliance.metric", "compliance.mechanism", "data.test_size", "developer.victims"):
        section, _, field = key.partition(".")
        other = _unlike(found, key) if field and field in values.get(section, {}) else None
        if other is None and field:
            continue
        changed = copy_of(values)
        if field:
            changed[section][field] = other
            grids = changed["sweep"] if isinstance(changed["sweep"], list) else [changed["sweep"]]
            for grid in grids:
                grid.pop(key, None)
        copy.write_text(tomli_w.dumps(changed))
        played = [paper_figure(cell.scenario) for cell in read(str(copy)).cells]
        assert not any(played) if field else played == base, key


def test_a_printed_figure_stands_beside_the_cells_of_a_sweep_that_are_the_papers() -> None:
    settings = ["data.n0=[10, 40]", "developer.queries=25", "compliance.epsilon=100.0", "compliance.mechanism=conceal"]
    by_size = {cell.scenario.data.n0: paper_figure(cell.scenario) for cell in read("conceal-adult-100", settings).cells}
    assert by_size[10].leakage == 58
    assert by_size[40] is None
    settings = ["data.protected=sex", "data.advantaged=Male", "data.disadvantaged=Female", "data.n0=40"]
    assert not any(paper_figure(cell.scenario) for cell in read("conceal-adult-100", settings).cells)


def test_a_printed_figure_stands_beside_its_own_data_that_a_file_has_not() -> None:
    base = read("dia-adult-sex")
    assert {figure.data for figure in base.scenario.paper} == {"acs-income, SEX"}
    assert not any(paper_figure(cell.scenario) for cell in base.cells)
    own = read("dia-adult-sex", ["data.source=acs-income:mine.csv", "data.protected=SEX", "data.advantaged='1'"])
    found = {cell.scenario.developer.defence for cell in own.cells if paper_figure(cell.scenario)}
    assert found == {figure.where["developer.defence"] for figure in base.scenario.paper}
    other = read("dia-adult-sex", ["data.source=mine.csv", "data.protected=SEX"])
    assert not any(paper_figure(cell.scenario) for cell in other.cells)
    lsac = read("dia-lsac-sex", ["data.source=lsac:mine.csv"])
    assert any(paper_figure(cell.scenario) for cell in lsac.cells)


# The digest.


def test_the_digest_does_not_depend_on_the_seed() -> None:
    assert plan_of(scenario__seed=1).digest == plan_of(scenario__seed=2).digest == plan_of().digest


def test_the_digest_does_not_depend_on_swept_seeds() -> None:
    first, second = (plan_of(sweep={"scenario.seed": seeds}) for seeds in ([1, 2], [3, 4]))
    assert first.digest == second.digest


def test_the_digest_depends_on_everything_else() -> None:
    variants: list[dict[str, Any]] = [
        {},
        {"scenario.name": "other"},
        {"scenario.about": "something"},
        {"scenario.trials": 2},
        {"data.source": "compas"},
        {"data.protected": "sex"},
        {"data.advantaged": "a"},
        {"data.disadvantaged": "b"},
        {"data.label": "y"},
        {"data.positive": "1"},
        {"data.drop": ["age"]},
        {"data.test_size": 51},
        {"data.n0": 5},
        {"data.train_share": 0.25},
        SYNTHETIC,
        {**SYNTHETIC, "data.n": 51},
        {**SYNTHETIC, "data.n0": 6},
        {**SYNTHETIC, "data.scores": "beta(2,3)"},
        {"compliance.metric": "eo"},
        {"compliance.mechanism": "conceal"},
        {"compliance.epsilon": 2.0},
        {"compliance.epsilon": "inf"},
        {"compliance.noise": "system"},
        {"developer.strategy": "gaussian"},
        {"developer.decoder": "lstsq"},
        {"developer.queries": 6},
        {"developer.perturbation": 0.2},
        {"adversary.attack": ["loss-test"]},
        {"adversary.probes": 4},
        {"sweep": {"developer.queries": [5, 6]}},
        {"sweep": {"developer.queries": [5, 7]}},
        {"paper": [{"source": "a paper", "where": {}}]},
    ]
    digests = [lay_out(values(changes), "mine.toml").digest for changes in variants]
    assert len(set(digests)) == len(variants)


def test_several_grids_are_played_one_after_the_other() -> None:
    grids = [
        {"developer.queries": [5, 6], "data.n0": [2]},
        {"data.n0": [3, 4], "developer.queries": [7]},
    ]
    found = lay_out(values({"sweep": grids}), "mine.toml")
    swept = [(cell.swept["developer.queries"], cell.swept["data.n0"]) for cell in found.cells]
    assert swept == [(5, 2), (6, 2), (7, 3), (7, 4)]
    assert found.scenario.axes == ("developer.queries", "data.n0")
    assert lay_out(as_values(found.scenario), "again").cells == found.cells


def test_a_setting_replaces_an_axis_of_every_grid(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    grids = [{"developer.queries": [5, 6], "data.n0": [2]}, {"developer.queries": [7], "data.n0": [2, 3]}]
    file.write_text(tomli_w.dumps(values({"sweep": grids})), encoding="utf-8")
    queries = [cell.swept for cell in read(str(file), ["data.n0=4"]).cells]
    assert queries == [{"developer.queries": 5}, {"developer.queries": 6}, {"developer.queries": 7}]
    sizes = [cell.swept for cell in read(str(file), ["developer.queries=8"]).cells]
    assert sizes == [{"data.n0": 2}, {"data.n0": 3}]


@pytest.mark.parametrize(("hidden", "batches"), [(False, 2), (True, 3)])
def test_a_trial_s_delta_is_shared_by_as_many_batches_as_it_may_ask(hidden: bool, batches: int) -> None:
    changes = {"data__hidden": hidden, "compliance__mechanism": "gaussian", "compliance__delta": 3e-5}
    assert plan_of(**changes).scenario.batch_delta == 3e-5 / batches


# What is refused. Every refusal is one line that names the key.

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    # Keys.
    ({"data.test_sise": 5}, "data.test_sise", "did you mean data.test_size?"),
    ({"develloper": {}}, "develloper", "did you mean developer?"),
    ({"zzz": {}}, "zzz", "unknown key"),
    ({"data.a\nb": 1}, "data.", "unknown key"),
    ({"sweep": {"developer.querys": [1]}}, "developer.querys", "did you mean developer.queries?"),
    ({"sweep": {"developer.queries": []}}, "developer.queries", "at least one value"),
    ({"sweep": {"developer.queries": 5}}, "developer.queries", "must be a list"),
    ({"sweep": {"developer.queries": [5, 0]}}, "developer.queries", "not 0"),
    ({"sweep": {"compliance.mechanism": ["laplace", "exact"]}}, "compliance.epsilon", "exact"),
    ({"sweep": [1]}, "sweep", "must be a table"),
    ({"sweep": [{"data.n0": [2]}, {"developer.queries": [5]}]}, "sweep", "the same keys"),
    ({"data": 3, "sweep": {"data.n0": [1]}}, "data", "must be a table"),
    ({"paper": [{"where": {}}]}, "paper.0.source", "is missing"),
    ({"paper": [{"source": "x", "where": {}, "leek": 1}]}, "paper.0.leek", "unknown key"),
    # What has to be there.
    ({"scenario": {"game": "reveal"}}, "scenario.name", "is missing"),
    ({"data.test_size": None}, "data.test_size", "is missing"),
    ({"compliance.epsilon": None}, "compliance.epsilon", "is missing"),
    ({"developer.queries": None}, "developer.queries", "is missing"),
    ({**SYNTHETIC, "data.n": None}, "data.n:", "is missing"),
    # Values.
    ({"scenario.name": 3}, "scenario.name", "string"),
    ({"scenario.name": "x" * 81}, "scenario.name", "80"),
    ({"scenario.game": "chess"}, "scenario.game", "reveal"),
    ({"scenario.trials": 0}, "scenario.trials", "not 0"),
    ({"scenario.trials": True}, "scenario.trials", "integer"),
    ({"scenario.seed": -1}, "scenario.seed", "not -1"),
    ({"data.test_size": 2}, "data.test_size", "not 2"),
    ({"data.n0": 50}, "data.n0", "at most 49"),
    ({"data.drop": [3]}, "data.drop", "string"),
    ({"data.train_share": 1}, "data.train_share", "not 1"),
    ({"data.train_share": math.nan}, "data.train_share", "not nan"),
    ({"data.n": 50}, "data.n:", "only synthetic"),
    ({**SYNTHETIC, "data.test_size": 30}, "data.test_size", "leave it out"),
    ({**SYNTHETIC, "data.n": 10**15}, "data.n:", "not 1000000000000000"),
    ({"data.hidden": 1}, "data.hidden", "boolean"),
    ({"data.hidden": True, "compliance.metric": "eo"}, "data.hidden", "(sp, abs_sp, di), not eo"),
    ({"data.hidden": True, "data.train_share": 0}, "data.hidden", "data.train_share must be above 0"),
    ({**SYNTHETIC, "data.hidden": True, "data.n": 200_000}, "data.hidden", "at most 100000 people, not 200000"),
    ({"compliance.mechanism": "gauss"}, "compliance.mechanism", "gaussian"),
    *(
        ({"compliance.epsilon": bad}, "compliance.epsilon", "positive number")
        for bad in (
            0,
            -math.inf,
            math.nan,
            True,
            "5",
            datetime.date(2024, 1, 1),
            10**400,
        )
    ),
    ({"compliance.delta": 1.0}, "compliance.delta", "less than 1"),
    ({"compliance.delta": -1e-6}, "compliance.delta", "not -1e-06"),
    ({"compliance.mechanism": "conceal", "compliance.bounding": "truncate"}, "compliance.bounding", "choose clamp"),
    ({"compliance.mechanism": "exact"}, "compliance.epsilon", '"inf"'),
    ({"developer.strategy": "a\nb"}, "developer.strategy", "single, pair, linear"),
    ({"developer.perturbation": 0}, "developer.perturbation", "not 0"),
    ({"adversary.attack": ["kl"]}, "adversary.attack", '"loss-test"'),
    ({"adversary.probes": 1}, "adversary.probes", "not 1"),
    ({"adversary.probes": 100_001}, "adversary.probes", "not 100001"),
    # Strategy, metric and decoder.
    ({"compliance.metric": "abs_sp"}, "developer.strategy", "reads sp, eo, fpr, oad"),
    ({"developer": {"strategy": "absolute"}}, "developer.strategy", "abs_fpr, eodds_max, eodds_sum, abs_oad, not sp"),
    ({"developer": {"strategy": "verdicts"}}, "developer.strategy", "pass-fail"),
    ({"developer": {"strategy": "splitting"}, "compliance.epsilon": 1.0}, "developer.strategy", "exact answers only"),
    ({"developer": {"strategy": "best"}, "compliance.epsilon": 1.0}, "developer.queries", "is missing"),
    ({"developer": {"strategy": "best"}, "compliance.metric": "ppv"}, "compliance.metric", "from exact answers only"),
    ({"developer.public_sample": 3}, "developer.public_sample", "must be even"),
    ({"compliance.precision": 16}, "compliance.precision", "decimals from 0 to 15, not 16"),
    ({"developer.knows": ["a"]}, "developer.knows", "not 'a'"),
    ({"developer.decoder": "l2"}, "developer.decoder", "l1 or lstsq or box or omp or"),
    ({"developer": {"strategy": "linear", "decoder": "l1"}}, "developer.decoder", "lstsq"),
    ({"developer": {"strategy": "single", "decoder": "l1"}}, "developer.decoder", "reads the answers itself"),
    # Numbers of queries.
    *(({"developer.queries": bad}, "developer.queries", "at least 1") for bad in (0, 2.0, True, "many", "n-1")),
    ({"developer.queries": 20_000}, "developer.queries", "not 20000"),
    (
        {"developer": {"strategy": "best", "queries": 1}, "compliance.metric": "eodds_max"},
        "developer.queries",
        "must be at least 2, for the strata of eodds_max, not 1",
    ),
]


@pytest.mark.parametrize("part", range(8))
def test_what_cannot_be_played_is_refused_in_one_line_that_names_the_key(part: int) -> None:
    for changes, key, hint in REFUSED[part::8]:
        text = refusal(lambda changes=changes: lay_out(values(changes), "mine.toml"))
        assert text.startswith("mine.toml: ")
        assert key in text
        assert hint in text


def test_a_refusal_is_a_sentence() -> None:
    assert "should" not in refusal(lambda: plan_of(scenario__name=""))
    assert "should" not in refusal(lambda: plan_of(adversary__attack=["loss-test", "loss-test"]))


def test_a_number_of_queries_that_a_strategy_cannot_ask_is_refused() -> None:
    for strategy, metric, queries in (
        ("single", "sp", 2),
        ("single", "eo", "n-1"),
        ("pair", "sp", 1),
        ("linear", "sp", 48),
        ("linear", "sp", 51),
        ("linear", "eo", 50),  # the stratum's people are asked, and their number varies
        ("absolute", "abs_sp", 49),
        ("absolute", "abs_eo", 50),
    ):
        asked = {"strategy": strategy, "queries": queries}
        text = refusal(lambda metric=metric, asked=asked: plan_of(compliance__metric=metric, developer=asked))
        assert f"developer.queries: strategy {strategy} asks" in text
        assert str(queries) in text


def test_a_number_of_queries_that_a_strategy_can_ask_is_taken() -> None:
    for strategy, metric, queries in (
        ("single", "eo", 1),
        ("pair", "sp", 2),
        ("linear", "sp", 49),
        ("linear", "sp", 50),
        ("linear", "eo", "n-1"),
        ("absolute", "abs_sp", 50),
        ("absolute", "abs_eo", "n"),
        ("gaussian", "eo", 10_000),
    ):
        found = plan_of(compliance__metric=metric, developer={"strategy": strategy, "queries": queries})
        assert found.scenario.queries == queries


def test_a_bad_setting_is_refused_in_one_line_that_names_it() -> None:
    for setting, named in (
        ("data.test_sise=3", "data.test_sise"),
        ("testsize=3", "testsize"),
        ("sweep.queries=[3]", "sweep.queries"),
        ("data.a\nb=3", "data."),
        ("=3", "--set"),
        ("data.test_size", "dotted.key=value"),
        ("a\nb", "dotted.key=value"),
        ("developer.queries=[]", "developer.queries"),
        ("data.test_size=", "data.test_size"),
        ("data.test_size=[50", "data.test_size"),
        ("data.advantaged=1", "data.advantaged"),
        ("scenario.seed=" + "9" * 5000, "scenario.seed"),
        ("scenario.seed=" + "[" * 20_000, "scenario.seed"),
    ):
        assert named in refusal(lambda setting=setting: read("demo", [setting]))


NEAREST = {
    "epsilon=1": "unknown key; did you mean compliance.epsilon?",
    "epsilno=1": "unknown key; did you mean compliance.epsilon?",
    "complaince.epsilon=1": "unknown key; did you mean compliance.epsilon?",
    "seed=1": "unknown key; did you mean scenario.seed or faults.seed?",
    "quries=3": "unknown key; did you mean developer.queries?",
    "developer.strategy=bset": "not 'bset'; did you mean best?",
    "developer.queries=nedeed": "not 'nedeed'; did you mean needed?",
    "compliance.mechanism=laplce": "not 'laplce'; did you mean laplace?",
    "compliance.metric=abs-sp": "not 'abs-sp'; did you mean abs_sp?",
    "compliance.precision=flaot32": "not 'flaot32'; did you mean float32?",
    'developer.knows=["precison"]': "not 'precison'; did you mean precision?",
    "scenario.game=revaal": "not 'revaal'; did you mean reveal?",
    'scenario.require=["landlok"]': "not 'landlok'; did you mean landlock?",
    "scenario.trials=five": "must be a valid integer, not 'five'",
}
"""What is set, and how its refusal ends."""


def test_a_refusal_ends_with_the_nearest_name_of_a_setting_and_of_a_file(tmp_path: Path) -> None:
    played = as_values(read("demo").scenario) | {"sweep": {}}
    for setting in NEAREST:
        assert refusal(lambda setting=setting: read("demo", [setting])).endswith(NEAREST[setting])
        dotted, _, text = setting.partition("=")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        section, dot, key = dotted.partition(".")
        inside = {**played.get(section, {}), key: value} if dot else value
        (tmp_path / "mine.toml").write_text(
            tomli_w.dumps({section: inside, **{k: v for k, v in played.items() if k != section}})
        )
        text = refusal(lambda: read(str(tmp_path / "mine.toml")))
        # A table that is not there is looked for among tables.
        assert text.endswith("did you mean compliance?" if section == "complaince" else NEAREST[setting])


@pytest.mark.parametrize(
    ("entry", "hint"),
    [
        (
            {"paper": [{"source": "x", "where": {}, "leakge": 3}]},
            "paper.0.leakge: unknown key; did you mean paper.leakage?",
        ),
        (
            {"faults": {"at": [{"trial": 1, "kind": "kill", "prty": "developer"}]}},
            "faults.at.0.prty: unknown key; did you mean faults.at.party?",
        ),
        (
            {"faults": {"at": [{"trial": 1, "kind": "kil", "party": "developer"}]}},
            "not 'kil'; did you mean kill?",
        ),
    ],
    ids=repr,
)
def test_a_key_of_an_entry_in_a_list_is_looked_for_among_such_keys(entry: dict[str, Any], hint: str) -> None:
    assert refusal(lambda: plan_of(**entry)).endswith(hint)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[scenario", "not valid TOML"),
        (b"a = 1\na = 2", "not valid TOML"),
        (b"name = \xff\xfe", "not UTF-8"),
        (b"", "is missing"),
        pytest.param(b"a = " + b"9" * 5000, "not valid TOML", id="5000 digits"),
        pytest.param(b"a = " + b"[" * 20_000, "not valid TOML", id="20000 brackets"),
    ],
)
def test_a_file_that_holds_no_scenario_is_refused_in_one_line_that_names_it(
    tmp_path: Path, content: bytes, said: str
) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(content)
    text = refusal(lambda: read(str(file)))
    assert "mine.toml" in text
    assert said in text


def test_settings_on_a_file_whose_sweep_is_no_table_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("sweep = 3\n" + tomli_w.dumps(PLAYABLE), encoding="utf-8")
    assert "sweep" in refusal(lambda: read(str(file), ["scenario.seed=[3]"]))


@pytest.mark.parametrize(("name", "hint"), [("dmeo", "did you mean demo?"), ("/nowhere/x.toml", "fairwall list")])
def test_a_scenario_that_is_nowhere_is_refused_with_a_hint(name: str, hint: str) -> None:
    text = refusal(lambda: read(name))
    assert repr(name) in text
    assert hint in text


def test_a_folder_is_no_scenario(tmp_path: Path) -> None:
    assert str(tmp_path) in refusal(lambda: read(str(tmp_path)))


PLAIN = st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates() | st.datetimes() | st.times()
GARBAGE = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
PLACES = st.sampled_from([*KEYS, *PLAYABLE, "adversary", "sweep", "paper"])
SWEEPS = st.fixed_dictionaries(
    {"sweep": st.dictionaries(st.sampled_from(KEYS), st.lists(GARBAGE, max_size=2), max_size=2)}
)


@given(st.dictionaries(PLACES, GARBAGE, min_size=1, max_size=3) | SWEEPS)
@example({"compliance.epsilon": 10**400})
@example({"data.test_size": 10**30})
def test_whatever_stands_at_a_known_key_is_played_or_refused_in_one_line(garbage: dict[str, Any]) -> None:
    # Whole sections first, so that a key goes into a section that is a table.
    changes = dict(sorted(garbage.items(), key=lambda item: "." in item[0]))
    broken = {key for key, value in changes.items() if "." not in key and not isinstance(value, dict)}
    changes = {key: value for key, value in changes.items() if "." not in key or key.partition(".")[0] not in broken}
    try:
        found = lay_out(values(changes), "mine.toml")
    except ScenarioError as error:
        text = str(error)
    else:
        text = found.digest
    assert len(text.splitlines()) == 1


def test_cells_are_counted_before_they_are_laid_out() -> None:
    axes = {"scenario.seed": [*range(1000)], "data.test_size": [*range(3, 1003)], "data.n0": [*range(1, 1001)]}
    assert cells_of([axes, axes]) == 2 * 10**9
    with pytest.raises(ScenarioError, match="has 1,000,000,000 cells; more than 10 need --force"):
        lay_out(values({"sweep": axes}), "some", cells_max=10)


def test_a_long_axis_is_laid_out_once_a_cell() -> None:
    seeds = [*range(1000), *range(1000)]
    cells = lay_out(values({"sweep": {"scenario.seed": seeds}}), "some").cells
    assert [cell.scenario.scenario.seed for cell in cells] == [*range(1000)]
    assert len({id(cell.scenario.sweep) for cell in cells}) == 1
    assert cells[-1].scenario.sweep == {"scenario.seed": seeds}


def test_the_secret_of_a_run_is_not_swept() -> None:
    with pytest.raises(ScenarioError, match=r"sweep.scenario.secret: cannot be swept: a run has one secret$"):
        read("demo", ['scenario.secret=["seed", "random"]'])
    assert read("demo", ["scenario.secret=random"]).scenario.scenario.secret == "random"  # noqa: S105 - a mode


def test_a_metric_s_other_name_is_played_and_recorded_as_its_key() -> None:
    sweep = read("demo", ['compliance.metric=["demographic_parity", "sp", "equal_opportunity"]'])
    assert [cell.swept["compliance.metric"] for cell in sweep.cells].count("sp") == len(sweep.cells) // 2
    assert {cell.scenario.compliance.metric for cell in sweep.cells} == {"sp", "eo"}


def test_a_bad_value_that_the_sweep_sets_others_in_place_of_is_refused() -> None:
    swept = {"compliance.mechanism": "concael", "sweep": {"compliance.mechanism": ["conceal", "laplace"]}}
    with pytest.raises(ScenarioError, match=r"compliance.mechanism: must be one of .*, not 'concael'"):
        lay_out(values(swept), "mine.toml")


def test_a_key_of_another_game_is_refused_set_or_swept() -> None:
    for changes in ({"developer.defence": "fft"}, {"sweep": {"developer.defence": ["fft", "none"]}}):
        with pytest.raises(ScenarioError, match=r"developer.defence: is a key of the inference game"):
            lay_out(values(changes), "mine.toml")
