"""What a data set allows, told before any budget is spent; for whoever holds its protected attributes."""
