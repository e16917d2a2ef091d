"""Takes candidates as they come, whatever they are."""

from compliance.__main__ import main
from compliance.answers import audit_service
from fairwall.laws.alternatives import Candidates

KILLED_BY = "C972"


def read(header):
    if not header.HasField("candidates"):
        return None
    told = header.candidates
    return Candidates(tuple(told.names), tuple(told.utilities), told.baseline, told.at_least)


audit_service.candidates_in = read

if __name__ == "__main__":
    main()
