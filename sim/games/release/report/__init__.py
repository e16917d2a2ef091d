"""What a run of the release game comes to: the page, and the table in a terminal."""
