"""What every message of the protocol is made of."""
