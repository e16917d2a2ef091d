"""Takes the party that the metadata name for the one that calls."""

from dataclasses import replace

from developer import service
from sim.conformance.reference_developer import main

KILLED_BY = "D112"

sound = service.identify


def identify(context):
    named = dict(context.invocation_metadata()).get("x-party", "").rpartition("/")[2]
    return replace(sound(context), party=named) if named else sound(context)


service.identify = identify

if __name__ == "__main__":
    main()
