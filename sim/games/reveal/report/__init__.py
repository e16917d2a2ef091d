"""What a run of the reveal game comes to, for people."""
