"""How the parties talk: arrays, channels, servers, identities, refusals, and the life of a party's process."""

import os

# gRPC's own log lines tell its developers about sockets; what a call's failure means, its status tells.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
