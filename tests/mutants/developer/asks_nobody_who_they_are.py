"""Lets every party ask its models."""

from fairwall.rpc import access
from sim.conformance.reference_developer import main

KILLED_BY = "D108"

access.CALLERS["/fairwall.developer.v1.ModelService/Predict"] = access.PARTIES_OF_A_RUN

if __name__ == "__main__":
    main()
