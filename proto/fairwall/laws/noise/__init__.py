"""Distributions of noise, their quantiles, and the balls and counts that they are drawn for."""
