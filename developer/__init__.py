"""The model developer: it queries fairness metrics, and infers the protected attribute from the answers."""
