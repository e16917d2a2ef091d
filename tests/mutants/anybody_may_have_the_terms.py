"""Tells its terms to every party."""

from compliance.__main__ import main
from fairwall.rpc import access

KILLED_BY = "C106"

access.CALLERS["/fairwall.compliance.v1.AuditService/GetTerms"] = access.PARTIES_OF_A_RUN

if __name__ == "__main__":
    main()
