"""The adversary in the inference game."""
