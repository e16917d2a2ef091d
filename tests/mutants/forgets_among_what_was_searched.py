"""Takes a search for the same whatever its candidates are called and worth."""

import copy

from compliance.__main__ import main
from compliance.answers import audit_service

KILLED_BY = "C973"

honest = audit_service.audit_digest


def digest(header, predictions):
    same = copy.deepcopy(header)
    if hasattr(same, "candidates"):
        same.ClearField("candidates")
    return honest(same, predictions)


audit_service.audit_digest = digest

if __name__ == "__main__":
    main()
