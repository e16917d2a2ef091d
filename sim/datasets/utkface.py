"""UTKFace: face images whose file names tell age, gender and race (Zhang, Song and Qi, CVPR 2017).

``PATH`` is a folder of JPEG files ``AGE_GENDER_RACE_TIME.jpg`` (or ``.jpg.chip.jpg``, where faces are cropped): age
in years, gender 0 for male, race 0 for white (1 Black, 2 Asian, 3 Indian, 4 other). Files of other names, of which
the collection has a few, are passed over. An image becomes 32 x 32 pixels of three colours each, in the order row,
column, colour. The label is ``young`` for an age of 30 at most: where the paper drew the line is lost.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairwall.tables.errors import DataError
from sim.datasets.formats import Format
from sim.datasets.roles import Shipped
from sim.datasets.rows import Rows

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
        raise DataError(f"{name}: no such folder")
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


def images(table: Rows) -> NDArray[np.float32]:
    """Turn a table's pixels, which are standardised, back into images as a network takes them.

    Returns
    -------
    ndarray
        Shape (N, 3, 32, 32).

    Raises
    ------
    DataError
        If the table does not begin with all the pixels.
    """
    if table.feature_names[: len(PLACES)] != PLACES:
        raise DataError(f"{table.name}: its features do not begin with the {len(PLACES):,} pixels of an image")
    pixels = table.features[:, : len(PLACES)].reshape(-1, SIDE, SIDE, 3)
    return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2), dtype=np.float32)


def resnet18(weights: Path | None = None) -> Any:
    """Make a ResNet-18 with one logit (He et al., CVPR 2016), a PyTorch module: images in, logits out, shape (rows,).

    Parameters
    ----------
    weights : Path, optional
        A state dictionary by the names of torchvision's ResNet-18, as it is published pretrained; its last layer, for a
        thousand classes, is left out. Fresh weights where not given: the paper's model is pretrained.

    Raises
    ------
    TrainingUnavailable
        If PyTorch is not installed.
    DataError
        If the file is no such dictionary.
    """
    from fairwall.learning.backend import pytorch

    torch = pytorch()
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(after)
            self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(after)
            self.downsample = (
                None
                if before == after
                else nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
            )

        def forward(self, x: Any) -> Any:
            passed = x if self.downsample is None else self.downsample(x)
            x = self.bn1(self.conv1(x)).relu()
            return (self.bn2(self.conv2(x)) + passed).relu()

    class ResNet18(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(64)
            self.maxpool = nn.MaxPool2d(3, 2, 1)
            before = 64
            for number, after in enumerate((64, 128, 256, 512), 1):
                stride = 1 if number == 1 else 2
                self.add_module(f"layer{number}", nn.Sequential(Block(before, after, stride), Block(after, after, 1)))
                before = after
            self.fc = nn.Linear(512, 1)

        def forward(self, x: Any) -> Any:
            x = self.maxpool(self.bn1(self.conv1(x)).relu())
            for number in range(1, 5):
                x = getattr(self, f"layer{number}")(x)
            return self.fc(x.mean((2, 3)))[:, 0]

    model = ResNet18()
    if weights is not None:
        try:
            state = torch.load(weights, map_location="cpu", weights_only=True)
            kept = {name: value for name, value in state.items() if not name.startswith("fc.")}
            missing, further = model.load_state_dict(kept, strict=False)
        except Exception as error:
            raise DataError(f"{weights}: cannot be read as the weights of a ResNet-18") from error
        if further or set(missing) != {"fc.weight", "fc.bias"}:
            raise DataError(f"{weights}: not the weights of a ResNet-18")
    return model
