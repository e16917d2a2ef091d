"""Has its user's home in its user agent."""

from pathlib import Path

import grpc

from sim.conformance.reference_client import main

KILLED_BY = "K101"

sound = grpc.secure_channel


def secure(target, credentials, options=(), compression=None):
    return sound(
        target, credentials, (*options, ("grpc.secondary_user_agent", f"audits of {Path.home()}")), compression
    )


grpc.secure_channel = secure

if __name__ == "__main__":
    main()
