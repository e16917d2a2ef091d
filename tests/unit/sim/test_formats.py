"""Tables in known formats: small made files in each of them, and the real ones where they are at hand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from sim.datasets import FORMATS, DataError, EncodedRows, formats, load
from sim.datasets.formats import _LSAC_COLUMNS, PLACES, SIDE

SHARED = Path(__file__).parents[4] / "shared" / "data"


def real(name: str) -> Path:
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"{name} is not at hand")
    return path


def write(path: Path, columns: Mapping[str, Any]) -> Path:
    csv.write_csv(pa.table(dict(columns)), path)
    return path


def columns_of(table: EncodedRows) -> set[str]:
    return {name.partition("=")[0] for name in table.feature_names}


def feature(table: EncodedRows, name: str) -> list[float]:
    return table.features[:, table.feature_names.index(name)].tolist()


def test_a_file_that_is_not_there_or_not_in_the_format_is_refused_in_one_line(tmp_path: Path) -> None:
    for name in FORMATS:
        other = write(tmp_path / "other.csv", {"a": [1, 2]})
        for path in (tmp_path / "none.csv", other):
            with pytest.raises(DataError) as refused:
                load(f"{name}:{path}")
            assert str(refused.value).isprintable()
            assert str(refused.value).startswith(f"{name}:{path}: ")


def test_a_format_without_a_path_is_refused() -> None:
    for source in ["lsac", "lsac:"]:
        with pytest.raises(DataError, match=f"^{source}: say where the file is, as lsac:PATH$"):
            load(source)


def test_a_path_with_a_colon_that_names_no_format_is_a_path(tmp_path: Path) -> None:
    path = write(tmp_path / "lsacs:x.csv", {"g": ["a", "b", "b"], "y": [0, 1, 1], "x": [1.0, 1.0, 2.0]})
    assert load(str(path), protected="g", advantaged="a", label="y", positive="1").name == "lsacs:x.csv"


def test_importing_the_formats_loads_nothing_heavy() -> None:
    code = "import sys, sim.datasets; assert not {'torch', 'PIL', 'sklearn', 'folktables', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


# LSAC.


def students() -> dict[str, list[Any]]:
    return {
        "lsat": [40.0, 30.0, 35.0, 25.0, 20.0, 33.0],
        "ugpa": [3.5, 3.0, 3.2, 2.5, 2.0, 2.8],
        "fam_inc": [5.0, 4.0, 3.0, 2.0, 1.0, 2.0],
        "age": [-60.0, -61.0, -62.0, -63.0, -50.0, -58.0],
        "gender": ["female", "male", "male", "female", "male", "female"],
        "race1": ["white", "white", "black", "asian", None, "hisp"],
        "cluster": [1.0, 2.0, 3.0, 1.0, 2.0, 2.0],
        "fulltime": [1.0, 1.0, 2.0, 2.0, 1.0, 1.0],
        "pass_bar": [1, 0, 1, 0, 1, 1],
        # What came later, and copies.
        "race": [7.0, 7.0, 3.0, 2.0, None, 4.0],
        "sex": [1.0, 2.0, 2.0, 1.0, 2.0, 1.0],
        "bar_passed": [True, False, True, False, True, True],
        "dnn_bar_pass_prediction": [0.9, 0.2, 0.9, 0.3, 0.8, 0.9],
    }


def test_lsac_is_white_against_the_rest_without_what_came_later(tmp_path: Path) -> None:
    table = load(f"lsac:{write(tmp_path / 'bar.csv', students())}")
    assert table.name == "lsac"
    assert table.protected.tolist() == [1, 1, 0, 0, 0]
    assert table.labels.tolist() == [1, 0, 1, 0, 1]
    assert columns_of(table) == {"lsat", "ugpa", "fam_inc", "age", "gender", "cluster", "fulltime"}
    assert feature(table, "cluster=2") == [0, 1, 0, 0, 1]


def test_lsac_by_gender_has_race_once(tmp_path: Path) -> None:
    table = load(f"lsac:{write(tmp_path / 'bar.csv', students())}", protected="gender")
    assert table.protected.tolist() == [0, 1, 1, 0, 0]
    assert "race1=white" in table.feature_names
    assert "race" not in columns_of(table)


def test_lsac_without_one_whole_row_is_refused(tmp_path: Path) -> None:
    rows = students()
    rows["age"] = [None] * 6
    with pytest.raises(DataError, match="no row has a value in all of"):
        load(f"lsac:{write(tmp_path / 'bar.csv', rows)}")


@pytest.mark.check
def test_the_real_bar_passage_study() -> None:
    path = real("bar_pass_prediction.csv.gz")
    table = load(f"lsac:{path}")
    assert table.features.shape == (21_897, 14)
    shares = [table.labels[table.protected == a].mean() for a in (0, 1)]
    # Of all 22,391 rows with a race, 85.4% and 96.6% pass.
    assert shares == pytest.approx([0.8555, 0.9669], abs=1e-4)
    women = load(f"lsac:{path}", protected="gender")
    assert [women.labels[women.protected == a].mean() for a in (0, 1)] == pytest.approx([0.9432, 0.9530], abs=1e-4)
    assert len(_LSAC_COLUMNS) == 9


# ACSCoverage.


def covered(rows: int = 6) -> dict[str, list[int]]:
    codes = ["MAR", "DIS", "ESP", "CIT", "MIG", "MIL", "ANC", "NATIVITY", "ESR", "ST", "FER", "RAC1P"]
    return {
        "AGEP": list(range(rows)),
        "SCHL": list(range(rows, 0, -1)),
        **{code: [row % 3 for row in range(rows)] for code in codes},
        "SEX": [1, 1, 0, 0, 1, 0][:rows],
        "PUBCOV": [1, 0, 1, 0, 0, 1][:rows],
    }


def test_acs_coverage_takes_codes_for_categories_and_men_for_advantaged(tmp_path: Path) -> None:
    table = load(f"acs-coverage:{write(tmp_path / 'coverage.csv', covered())}")
    assert table.protected.tolist() == [1, 1, 0, 0, 1, 0]
    assert table.labels.tolist() == [1, 0, 1, 0, 0, 1]
    assert feature(table, "MAR=1") == [0, 1, 0, 0, 1, 0]
    assert table.feature_names[:2] == ("AGEP", "SCHL")
    other = load(f"acs-coverage:{tmp_path / 'coverage.csv'}", protected="DIS", advantaged="0", disadvantaged=("1", "2"))
    assert other.protected.tolist() == [1, 0, 0, 1, 0, 0]
    assert "SEX=1" in other.feature_names


@pytest.mark.check
def test_the_real_public_coverage() -> None:
    path = real("db_ACSCoverage.csv.gz")
    table = load(f"acs-coverage:{path}")
    assert table.features.shape == (98_739, 50)
    assert int(table.protected.sum()) == 42_039
    # Only women were asked about births: those who have an answer, a 1 or 2, are all in one group.
    answered = np.array(feature(table, "FER=1")) + np.array(feature(table, "FER=2")) > 0
    assert answered.sum() > 40_000
    assert not table.protected[answered].any()


# ACS Income.


def test_acs_income_is_folktables_problem(tmp_path: Path) -> None:
    folktables = pytest.importorskip("folktables", reason="folktables is not installed")
    rng = np.random.default_rng(0)
    n = 60
    people = {
        "SERIALNO": [f"2018{row}" for row in range(n)],
        "AGEP": rng.integers(10, 90, n),
        "COW": np.where(rng.random(n) < 0.2, np.nan, rng.integers(1, 9, n)),
        "SCHL": rng.integers(1, 25, n).astype(float),
        "MAR": rng.integers(1, 6, n),
        "OCCP": rng.integers(10, 9800, n).astype(float),
        "POBP": rng.integers(1, 555, n),
        "RELP": rng.integers(0, 18, n),
        "WKHP": np.where(rng.random(n) < 0.2, np.nan, rng.integers(1, 99, n)),
        "SEX": rng.integers(1, 3, n),
        "RAC1P": rng.integers(1, 10, n),
        "PINCP": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 120_000, n)),
        "PWGTP": rng.integers(0, 50, n),
    }
    path = write(tmp_path / "psam_p06.csv", {k: pa.array(v, from_pandas=True) for k, v in people.items()})
    table = load(f"acs-income:{path}")
    import pandas

    features, labels, _ = folktables.ACSIncome.df_to_numpy(pandas.read_csv(path))
    assert table.labels.tolist() == labels.astype(int).tolist()
    sex = features[:, folktables.ACSIncome.features.index("SEX")]
    assert table.protected.tolist() == (sex == 1).astype(int).tolist()
    assert set(table.feature_names) == set(folktables.ACSIncome.features) - {"SEX"}
    hours = features[:, folktables.ACSIncome.features.index("WKHP")]
    assert feature(table, "WKHP") == pytest.approx(((hours - hours.mean()) / hours.std()).tolist())
    white = load(f"acs-income:{path}", protected="RAC1P", advantaged="1")
    assert int(white.protected.sum()) == int((features[:, -1] == 1).sum())
    young = write(
        tmp_path / "psam_p01.csv",
        {k: pa.array(v[:9] if k != "AGEP" else [9] * 9, from_pandas=True) for k, v in people.items()},
    )
    with pytest.raises(DataError, match="older than 16"):
        load(f"acs-income:{young}")


def test_without_folktables_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "folktables", None)
    with pytest.raises(DataError, match=r"pip install 'fairwall\[acs\]'"):
        load(f"acs-income:{tmp_path / 'psam_p06.csv'}")


# Bias in Bios.


def biographies(people: int = 40) -> pa.Table:
    rng = np.random.default_rng(0)
    words = ["teaches", "heals", "writes", "paints", "studies", "builds", "plays", "cooks"]
    texts = [" ".join(rng.choice(words, 12)) + "." for _ in range(people)]
    return pa.table(
        {
            "hard_text": texts,
            "profession": pa.array([21 if row % 3 else 25 for row in range(people)], pa.int64()),
            "gender": pa.array([int(row % 4 == 0) for row in range(people)], pa.int64()),
        }
    )


def test_biographies_become_weights_of_words(tmp_path: Path) -> None:
    parquet.write_table(biographies(), tmp_path / "train.parquet")
    table = load(f"bias-in-bios:{tmp_path / 'train.parquet'}")
    assert table.features.shape == (40, 8)
    assert table.feature_names[0] == "word builds"
    assert table.protected.tolist() == [int(row % 4 != 0) for row in range(40)]
    assert table.labels.tolist() == [int(row % 3 > 0) for row in range(40)]
    text = biographies().column("hard_text").to_pylist()
    counts = np.array([[t.count(name.removeprefix("word ")) for name in table.feature_names] for t in text])
    rarity = np.log(41 / (1 + (counts > 0).sum(0))) + 1
    weights = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * rarity
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    assert np.allclose(table.features, (weights - weights.mean(0)) / weights.std(0))


def test_so_many_biographies_of_each_gender_and_words_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "PER_GENDER", 12)
    monkeypatch.setattr(formats, "WORDS", 5)
    parquet.write_table(biographies(), tmp_path / "train.parquet")
    table, again = (load(f"bias-in-bios:{tmp_path / 'train.parquet'}") for _ in range(2))
    assert (int(table.protected.sum()), len(table.labels), len(table.feature_names)) == (12, 22, 5)
    assert np.array_equal(table.features, again.features)


# UTKFace.


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made pictures under names as in the collection."""
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    folder = tmp_path_factory.mktemp("UTKFace")
    rng = np.random.default_rng(0)
    for row in range(24):
        name = f"{5 * row}_{row % 2}_{row % 5}_2017011000000000{row:02}.jpg.chip.jpg"
        name = name if row % 2 else name.removesuffix(".chip.jpg")
        pixels = rng.integers(0, 256, (8, 8, 3)).astype(np.uint8).repeat(25, 0).repeat(25, 1)
        pillow.fromarray(pixels).save(folder / name, "JPEG", quality=95)
    (folder / "61_1_20170109142408075.jpg.chip.jpg").write_bytes(b"no race in the name")
    (folder / "readme.txt").write_text("no picture")
    return folder


def test_faces_become_pixels(faces: Path) -> None:
    from PIL import Image

    table = load(f"utkface:{faces}")
    names = sorted(path.name for path in faces.iterdir() if path.name.count("_") == 3)
    assert len(table.labels) == len(names) == 24
    assert table.labels.tolist() == [int(int(name.split("_")[0]) <= 30) for name in names]
    assert table.protected.tolist() == [int(name.split("_")[2] == "0") for name in names]
    assert table.feature_names == (*PLACES, "gender=female", "gender=male")
    pixels = table.features[:, : len(PLACES)].reshape(24, SIDE, SIDE, 3)
    with Image.open(faces / names[3]) as image:
        small = np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR), float) / 255
    every = []
    for name in names:
        with Image.open(faces / name) as image:
            every.append(np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR), float) / 255)
    standard = (small - np.mean(every, 0)) / np.std(every, 0)
    assert np.allclose(pixels[3], standard, atol=1e-5)


def test_a_picture_that_is_none_is_refused_without_its_name(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    (tmp_path / "20_0_0_20170110.jpg").write_bytes(b"no picture")
    with pytest.raises(DataError, match="1 of 1 images cannot be read"):
        load(f"utkface:{tmp_path}")
