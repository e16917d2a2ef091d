"""Labels are not protected: the pages say so where it is read, and it is so."""

from pathlib import Path

import numpy as np
import pytest

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion
from compliance.noise.sampling import Seeded
from compliance.records.people import Records

DOCS = Path(__file__).parents[3] / "docs"


def test_the_width_of_an_interval_tells_how_many_people_have_the_label() -> None:
    widths = []
    for positive in (20, 60):
        labels, protected = (np.arange(100) < positive).astype(np.uint8), (np.arange(100) % 2).astype(np.uint8)
        asked = BatchQuestion("eo", np.zeros((1, 100)), Records(labels, protected, ("eo",)))
        released = MECHANISMS["laplace"].release(asked, NO_FACTS, 1.0, 0.0, Seeded(np.random.default_rng(0)))
        assert released.low is not None
        assert released.high is not None
        widths.append(float(released.high[0] - released.low[0]))
    assert widths[0] > 1.01 * widths[1]


@pytest.mark.parametrize("page", ["serving.md", "metrics.md"])
def test_it_is_said_where_it_is_read(page: str) -> None:
    text = " ".join((DOCS / page).read_text().split())
    assert "Labels are not" in text
    assert "widths of" in text
