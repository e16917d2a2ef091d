"""What a run of the disclosure game comes to: the page, and the table in a terminal."""
