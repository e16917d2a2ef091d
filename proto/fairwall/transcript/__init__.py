"""Messages of transcripts."""
