"""Communication between parties: arrays, channels, servers, identities, refusals, and the life of a party's process."""

import os

# gRPC's own log lines are about sockets, for its developers; a failed call's status has its meaning.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
