"""The simulator: it deals, referees, scores, records and shows the games."""
