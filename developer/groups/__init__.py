"""The developer in the game of groups: it queries counts by group, and guesses each person's group."""
