"""What a run of the inference game comes to, for people."""
