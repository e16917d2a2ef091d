"""The developer in the game of groups: it asks for counts by group, and says who is in which."""
