"""What the referee serves."""
