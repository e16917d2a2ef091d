"""Charges a request that it refuses for its column."""

import secrets

import numpy as np

from compliance.__main__ import main
from compliance.answers.audits import Case
from fairwall.rpc.errors import Refusal

KILLED_BY = "C965"

sound = Case.by


def by(case, column):
    try:
        return sound(case, column)
    except Refusal:
        nothing = np.zeros((1, case.records.people))
        case.answer("alice", secrets.token_hex(8), b"", "sp", nothing, 1.0)
        raise


Case.by = by

if __name__ == "__main__":
    main()
