"""The developer in the disclosure game: it reads a release for information about one person."""
