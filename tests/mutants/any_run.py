"""Does not look at the run in a certificate."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.answers import audit_service as service
from fairwall.rpc import identity, server

KILLED_BY = "C107"


def identify(context, sound=identity.identify):
    caller = sound(context)
    return replace(caller, run="kit") if caller else None


server.identify = service.identify = identify

if __name__ == "__main__":
    main()
