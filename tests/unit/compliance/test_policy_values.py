"""A policy's values match by what the file says, whatever its form, and in an engine; what nobody named is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tomli_w
from pyarrow import parquet

from compliance.deployment.policy import reading
from compliance.deployment.policy.loading import counted, load, load_release, traits
from compliance.deployment.policy.schema import Policy, PolicyError
from compliance.records.groups import Attribute, Grouped
from fairwall.errors import DataError
from tests.unit.compliance.test_groups import asked

Frame = dict[str, list[Any]]

N = 293
PEOPLE: Frame = {
    "id": list(range(4 * N)),
    "code": ["0101"] * N + ["True"] * N + ["1.0"] * N + ["7"] * N,
    "group": ["a", "b"] * (2 * N),
    "repaid": ["1", "0", "0", "1"] * N,
}


def as_csv(path: Path, columns: Frame) -> str:
    pd.DataFrame(columns, dtype=str).to_csv(path.with_suffix(".csv"), index=False)
    return f"{path.name}.csv"


def as_text(path: Path, columns: Frame) -> str:
    texts = {name: [None if each is None else str(each) for each in of] for name, of in columns.items()}
    table = pa.table({name: pa.array(of) for name, of in texts.items()})
    parquet.write_table(table, path.with_suffix(".parquet"))
    return f"{path.name}.parquet"


def as_categories(path: Path, columns: Frame) -> str:
    pd.DataFrame({name: pd.Categorical(of) for name, of in columns.items()}).to_parquet(path.with_suffix(".parquet"))
    return f"{path.name}.parquet"


FORMS = [as_csv, as_text, as_categories]
Write = Callable[[Path, Frame], str]


def policy(folder: Path, source: str, data: dict[str, Any] | None = None, **sections: Any) -> Policy:
    for kept in ("credentials", "ledger", "seal"):
        (folder / kept).mkdir(exist_ok=True)
    values = {
        "deployment": {
            "name": "loans",
            "listen": "127.0.0.1:0",
            "credentials": "credentials",
            "ledger": "ledger/l.sqlite",
            "seal": "seal/head",
        },
        "data": {
            "source": source,
            "protected": "group",
            **({} if "protected" in (data or {}) else {"advantaged": "a"}),
            "label": "repaid",
            "positive": "1",
            "minimum_group": 1,
            **(data or {}),
        },
        "audit": {"metrics": ["sp"], "mechanism": "laplace", "queries_max": 1},
        "budget": {"epsilon": 1.0},
        "developers": {"alice": {"epsilon": 1.0}},
        **sections,
    }
    (folder / "policy.toml").write_bytes(b"\xef\xbb\xbf" + tomli_w.dumps(values).encode())  # as some editors do
    (only,) = reading.read(folder / "policy.toml").datasets.values()
    return only


def groups(found: Policy) -> tuple[list[int], list[int]]:
    """Labels and groups by the first protected column."""
    records = next(iter(load(found)[0].values()))
    return records.labels.tolist(), records.protected.tolist()


@pytest.mark.parametrize("write", FORMS)
def test_a4_who_is_in_which_group_is_as_the_file_spells_it(tmp_path: Path, write: Write) -> None:
    listed = ["0101", "True", "1.0", "other"]
    found = load(policy(tmp_path, write(tmp_path / "t", PEOPLE), {"groups": {"code": listed}}))[2]
    assert found is not None
    assert np.bincount(found.codes[0]).tolist() == [N] * 4
    with pytest.raises(PolicyError, match=r"data\.groups\.code: some rows have a value that is not listed"):
        load(policy(tmp_path, write(tmp_path / "t", PEOPLE), {"groups": {"code": listed[:3]}}))


@pytest.mark.parametrize("write", FORMS)
@pytest.mark.parametrize("advantaged", ["0101", "True", "1.0", "1", "7.0"])
def test_a4_the_advantaged_and_what_is_released_match_alike(tmp_path: Path, write: Write, advantaged: str) -> None:
    others = [each for each in ("0101", "true", "1", "7") if each != advantaged.lower().removesuffix(".0")]
    source = write(tmp_path / "t", PEOPLE)
    release = {"source": source, "protocol": "grr", "epsilon": 1.0, "columns": {"code": [advantaged, *others]}}
    data = {"protected": "code", "advantaged": advantaged, "disadvantaged": others}
    found = policy(tmp_path, source, data, release=release)
    assert sum(groups(found)[1]) == N
    _, codes = load_release(found) or ((), np.zeros(0))
    assert np.bincount(codes[:, 0]).tolist() == [N] * 4
    with pytest.raises(DataError, match="several others"):
        load(policy(tmp_path, source, {"protected": "code", "advantaged": advantaged}))


@pytest.mark.parametrize("write", FORMS)
def test_a3_both_sides_are_named_where_there_is_a_third_value(tmp_path: Path, write: Write) -> None:
    people = PEOPLE | {"repaid": ["1", "0", "0", "late"] * N}
    source = write(tmp_path / "t", people)
    with pytest.raises(DataError, match="column 'repaid' has besides '1' several others; its values are 0, 1, late"):
        load(policy(tmp_path, source))
    assert sum(groups(policy(tmp_path, source, {"negative": ["0", "late"]}))[0]) == N
    with pytest.raises(DataError, match="neither 1 nor 0 in some rows"):
        load(policy(tmp_path, source, {"negative": "0"}))
    with pytest.raises(PolicyError, match=f"missing values: repaid {N:,} of"):
        load(policy(tmp_path, source, {"missing_values": ["late"]}))
    assert len(groups(policy(tmp_path, source, {"missing_values": ["late"], "missing": "drop"}))[0]) == 3 * N


@pytest.mark.parametrize("write", FORMS)
def test_a3_by_several_columns_each_names_its_others(tmp_path: Path, write: Write) -> None:
    source, advantaged = write(tmp_path / "t", PEOPLE), {"group": ["a"], "code": ["0101", "1"]}
    data = {"protected": advantaged, "disadvantaged": {"code": ["True", "7"]}}
    found = load(policy(tmp_path, source, data))[0]
    assert {name: int(each.protected.sum()) for name, each in found.items()} == {"group": 2 * N, "code": 2 * N}
    with pytest.raises(DataError, match="column 'code' has besides '0101' or '1' several others"):
        load(policy(tmp_path, source, data | {"disadvantaged": {"group": "b"}}))
    with pytest.raises(PolicyError, match=r"data\.disadvantaged: sex is not in data\.protected"):
        policy(tmp_path, source, data | {"disadvantaged": {"sex": "b"}})


def test_a3_the_terminal_alone_is_told_how_many_have_which_value(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    found = policy(tmp_path, as_csv(tmp_path / "t", PEOPLE))
    load(found)
    group, label = counted(found)
    assert group.endswith("column 'group': advantaged 'a' 586; disadvantaged 'b' 586")
    assert label.endswith("column 'repaid': positive '1' 586; negative '0' 586")
    assert "586" not in caplog.text


@pytest.mark.parametrize("write", FORMS)
@pytest.mark.parametrize("text", ["Race Not Available", "Unknown", "not reported", None])
def test_a5_who_is_not_known_is_counted_apart_and_not_among_others(
    tmp_path: Path, write: Write, text: str | None
) -> None:
    people = PEOPLE | {"code": ["x", "y", "z", text] * N}
    source = write(tmp_path / "t", people)
    found = load(policy(tmp_path, source, {"groups": {"code": ["x", "other", "unknown"]}}))[2]
    assert found is not None
    assert np.bincount(found.codes[0]).tolist() == [N, 2 * N, N]
    with pytest.raises(PolicyError, match="list every value"):
        load(policy(tmp_path, source, {"groups": {"code": ["x", "other"]}}))


@pytest.mark.parametrize("unknown", ["unknown", "Race Not Available", "prefer not to say"])
def test_a5_who_is_not_known_is_counted_and_never_compared(unknown: str) -> None:
    values = ("White", "Black", unknown)
    cells = np.repeat([0, 1, 2], 100)
    people = Grouped((Attribute("race", values),), cells[np.newaxis].astype(np.uint8), np.ones(300, np.uint8))
    decisions = np.concatenate([np.arange(100) < each for each in (50, 40, 12)])
    found = asked(people, decisions, ("selection_rate",), by=("race",))
    records = {record["race"]: record for record in found.records()}
    assert [records[value]["compared"] for value in values] == [True, True, False]
    assert [round(records[value]["people"]) for value in values] == [100] * 3
    assert np.isnan(records[unknown]["selection_rate_ratio"])
    most, least, pair = found.worst_pair("selection_rate") or ((), (), None)
    assert (most, least) == (("White",), ("Black",))
    assert pair is not None
    assert pair.ratio == pytest.approx(0.8)
    black = next(record for record in found.however_filled() if record["race"] == "Black")
    assert black["selection_rate_ratio_least"] < 0.8
    with pytest.raises(ValueError, match="is not known: such people are counted, not compared"):
        found.practice(reference=unknown)


def test_a9_a_column_of_categories_and_columns_of_one_name_stop_nothing(tmp_path: Path) -> None:
    columns = PEOPLE | {"extra": [f"x{place % 5}" for place in range(4 * N)]}
    found = policy(tmp_path, as_categories(tmp_path / "t", columns), {"id": "id", "public": ["extra"]})
    load(found)
    assert traits(found, {"group"})[0]
    text = (tmp_path / as_csv(tmp_path / "u", columns)).read_text().replace("code,", "extra,", 1)
    (tmp_path / "u.csv").write_text(text)
    found = policy(tmp_path, "u.csv", {"id": "id"})
    load(found)
    assert traits(found, {"group"})[0]


@pytest.mark.filterwarnings("ignore:fetch_arrow_table")
@pytest.mark.parametrize("advantaged", ["0101", "True", "1.0", "7", " 7 "])
def test_a_value_means_the_same_in_an_engine(tmp_path: Path, advantaged: str) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("ibis")
    from compliance.records.engine import Engine, EngineError, TableLocation
    from compliance.records.engine import duckdb as opened

    table = TableLocation(str(tmp_path / as_text(tmp_path / "t", PEOPLE)))
    others = [each for each in ("0101", "true", "1", "7") if each != advantaged.strip().lower().removesuffix(".0")]
    source = {"protected": "code", "advantaged": advantaged, "disadvantaged": others}
    labels, protected = groups(policy(tmp_path, "t.parquet", source))

    def engine(*named: Any) -> Engine:
        return Engine(lambda: opened(None, None), table, "id", "code", "repaid", advantaged, *named)

    told = engine(tuple(others), "1.0").look()
    cells = {(y, a): int(sum(np.array(labels)[np.array(protected) == a] == y)) for y in (0, 1) for a in (0, 1)}
    assert told.counts == cells
    for some, why in ((None, "several others"), (others[-1], "neither advantaged nor disadvantaged")):
        with pytest.raises(EngineError, match=why):
            engine(some, "1").look()
    with pytest.raises(EngineError, match="has no value in 'code' or 'repaid'"):
        engine(tuple(others), "1", (), ("0",)).look()
