"""Exact sampling of noise, from a seed or from the operating system."""
