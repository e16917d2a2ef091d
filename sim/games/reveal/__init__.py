"""The reveal game: the developer asks for fairness gaps and guesses the protected attributes behind them."""
