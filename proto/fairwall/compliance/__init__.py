"""What compliance serves."""
