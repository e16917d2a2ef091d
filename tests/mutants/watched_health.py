"""Lets anybody who is let in watch its health, for ever."""

from compliance.__main__ import main
from fairwall.rpc import access

KILLED_BY = "C115"

access.CALLERS["/grpc.health.v1.Health/Watch"] = access.PARTIES_OF_A_RUN

if __name__ == "__main__":
    main()
