"""Intervals that hold the true gaps of released answers."""
