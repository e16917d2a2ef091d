"""Draws other gaps each time that the same search is asked for."""

from dataclasses import replace

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service

KILLED_BY = "C973"

honest = audit_service.search_of


def found(entry):
    search = honest(entry)
    if search is None:
        return None
    return replace(search, draws=np.random.default_rng().permutation(search.draws))


audit_service.search_of = found

if __name__ == "__main__":
    main()
