"""Reads the list of revoked certificates and lets everybody on it in."""

from compliance.__main__ import main
from fairwall.rpc.revoked import Revoked

KILLED_BY = "C130"

sound = Revoked.holds
Revoked.holds = lambda self, certificate: sound(self, certificate) and False

if __name__ == "__main__":
    main()
