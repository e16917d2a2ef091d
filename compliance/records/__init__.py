"""The people of audits: in two groups or more, their rows, and whether two data sets have the same people."""
