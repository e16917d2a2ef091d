"""What compliance answers: each request is validated, charged to an account of the ledger, and answered."""
