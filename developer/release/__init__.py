"""The developer's side of the release game: it trains on people whose sensitive columns are sanitised."""
