"""The adversary in the training game."""
