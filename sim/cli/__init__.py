"""The command ``fairwall``: one file a command, which parses and prints, and holds no rule of a game."""
