"""The developer in the washing game: it deploys one model, and has another one audited."""
