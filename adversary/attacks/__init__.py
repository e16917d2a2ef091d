"""The adversary's attacks, one file each."""
