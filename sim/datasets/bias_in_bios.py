"""Bias in Bios: short biographies, each with an occupation and a gender (De-Arteaga et al., FAT* 2019).

The file is the Parquet file of one part of the collection, with columns ``hard_text`` (the biography without its first
sentence), ``profession`` (0 to 27 in alphabetical order; 21 is professor, the most common one) and ``gender`` (0 is
male). A biography becomes the weights of the 500 most common words: term frequencies, as 1 + log of the count, times
inverse document frequencies, each biography scaled to norm 1. `PER_GENDER` people of each gender are drawn, always the
same ones, as the paper keeps 5,000 to train on and 2,000 to test with.

The texts are about real people. Words that are common in thousands of biographies reveal little about one; a file with
few biographies would have names among its 500.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairwall.tables.values import OTHERS
from sim.datasets.formats import Format, needed
from sim.datasets.roles import Shipped

if TYPE_CHECKING:
    import pyarrow as pa

WORDS = 500
PER_GENDER = 7000


def _read(path: Path, name: str) -> pa.Table:
    import pyarrow as pa

    # Imported here: scikit-learn takes seconds to load.
    from sklearn.feature_extraction.text import TfidfVectorizer

    people = needed(path, ("hard_text", "profession", "gender"), name, "biographies").drop_null()
    gender = people.column("gender").to_numpy()
    rng = np.random.default_rng(0)
    drawn = [rng.permutation(np.flatnonzero(gender == value))[:PER_GENDER] for value in np.unique(gender)]
    people = people.take(pa.array(np.sort(np.concatenate(drawn))))
    vectorizer = TfidfVectorizer(max_features=WORDS, sublinear_tf=True)
    weights = vectorizer.fit_transform(people.column("hard_text").to_pylist()).toarray()
    # No word can be mistaken for a column with a role.
    words = {f"word {word}": weights[:, place] for place, word in enumerate(vectorizer.get_feature_names_out())}
    parts = {part: people.column(part) for part in ("profession", "gender")}
    return pa.table({**words, **parts})


BIAS_IN_BIOS = Format(
    Shipped(
        name="bias-in-bios",
        label="profession",
        positive="21",
        negative=OTHERS,
        groups={"gender": ("0", "1")},
    ),
    _read,
)
