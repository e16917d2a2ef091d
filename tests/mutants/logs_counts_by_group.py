"""Writes the exact counts by group into its log."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import group_service as service
from compliance.answers.groups import GroupCase

KILLED_BY = "C610"

sound = GroupCase.answer


def settle(grouped, developer, request_id, digest, header, predictions):
    cell, count = grouped.people.cells(tuple(header.by))
    service.LOG.info("counted %s", np.bincount(cell, minlength=count).tolist())
    return sound(grouped, developer, request_id, digest, header, predictions)


GroupCase.answer = settle

if __name__ == "__main__":
    main()
