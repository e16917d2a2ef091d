"""Plans of what a data set allows, made before budget is spent, for the holder of its protected attributes."""
