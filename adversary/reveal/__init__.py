"""The adversary in the reveal game."""
