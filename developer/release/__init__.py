"""The developer in the release game: it trains on people whose sensitive columns are sanitised."""
