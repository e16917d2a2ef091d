"""What the developer serves."""
