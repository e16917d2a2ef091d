"""Takes a party's name with a slash behind it for the name."""

from fairwall.rpc import identity
from sim.conformance.reference_developer import main

KILLED_BY = "D114"

sound = identity._only_caller
identity._only_caller = lambda names: sound(name.rstrip("/") for name in names)

if __name__ == "__main__":
    main()
