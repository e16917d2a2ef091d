"""What the parties of a game share: the wire, the RPC layer and the public mathematics."""

__version__ = "0.1.0"
