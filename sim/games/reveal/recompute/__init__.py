"""What the developer and the adversary report of a reveal trial, computed again from its messages."""
