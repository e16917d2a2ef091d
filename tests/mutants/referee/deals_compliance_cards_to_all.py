"""Deals the protected attributes to whoever asks for them."""

from fairwall.rpc import access
from sim.conformance.reference_referee import main

KILLED_BY = "R102"

access.CALLERS["/fairwall.game.v1.RefereeService/TakeComplianceDeal"] = access.PARTIES_OF_A_RUN

if __name__ == "__main__":
    main()
