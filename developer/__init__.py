"""The model developer: it asks about fairness, and works out the protected attribute from the answers."""
