"""The games, a folder each, and what they share: the table, the referee, cards and submissions."""
