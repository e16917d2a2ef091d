"""What a run of the training game comes to: the page, and the table in a terminal."""
