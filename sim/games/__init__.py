"""The games: what a trial of each is worth recording."""
