"""The figures of the reveal game's report."""
