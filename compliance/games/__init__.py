"""What compliance does in a game."""
