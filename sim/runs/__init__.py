"""A run's folder, its trials, and its page."""
