"""UTKFace: face images whose file names give age, gender and race (Zhang, Song and Qi, CVPR 2017).

``PATH`` is a folder of JPEG files ``AGE_GENDER_RACE_TIME.jpg`` (or ``.jpg.chip.jpg``, where faces are cropped): age in
years, gender 0 for male, race 0 for white (1 Black, 2 Asian, 3 Indian, 4 other). Files of other names, of which the
collection has a few, are skipped. An image becomes 32 x 32 pixels of three colours each, in the order row, column,
colour. The label is ``young`` for an age of 30 at most: the paper's limit is lost.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairwall.tables.errors import DataError
from sim.datasets.formats import Format
from sim.datasets.roles import Shipped

if TYPE_CHECKING:
    import pyarrow as pa

SIDE = 32
YOUNG = 30
PLACES = tuple(f"{y},{x} {colour}" for y in range(SIDE) for x in range(SIDE) for colour in ("red", "green", "blue"))
_NAME = re.compile(r"(\d{1,3})_([01])_([0-4])_\d+\.jpg(\.chip\.jpg)?", re.ASCII | re.IGNORECASE)


def _read(path: Path, name: str) -> pa.Table:
    import pyarrow as pa

    try:
        from PIL import Image
    except ModuleNotFoundError as missing:
        raise DataError(f"{name}: images need Pillow: pip install 'fairwall[images]'") from missing
    if not path.is_dir():
        raise DataError(f"{name}: no such folder: name the one with UTKFace's images")
    faces = [(file, parts) for file in sorted(path.iterdir()) if (parts := _NAME.fullmatch(file.name))]
    if not faces:
        raise DataError(f"{name}: has no file named AGE_GENDER_RACE_TIME.jpg")
    pixels = np.empty((len(faces), SIDE * SIDE * 3))
    for row, (file, _) in enumerate(faces):
        try:
            with Image.open(file) as image:
                small = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        except OSError:
            raise DataError(f"{name}: {row + 1:,} of {len(faces):,} images cannot be read; it is no JPEG") from None
        pixels[row] = np.asarray(small, dtype=np.float64).ravel() / 255
    ages, genders, races = (np.array([int(parts[place]) for _, parts in faces]) for place in (1, 2, 3))
    return pa.table(
        {
            **{place: pixels[:, column] for column, place in enumerate(PLACES)},
            "gender": np.where(genders == 0, "male", "female"),
            "race": np.where(races == 0, "white", "other"),
            "age": np.where(ages <= YOUNG, "young", "old"),
        }
    )


UTKFACE = Format(
    Shipped(
        name="utkface",
        label="age",
        positive="young",
        groups={"race": ("white", "other"), "gender": ("male", "female")},
    ),
    _read,
)
