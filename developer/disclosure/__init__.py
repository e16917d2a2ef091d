"""The developer in the disclosure game: it reads a release for what it says of one person."""
