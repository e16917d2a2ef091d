"""Laws of single games: detection of cheats, overfitting, disclosure, commitments and alternatives."""
