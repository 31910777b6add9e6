"""How good a model is on test data: `evaluate` of each task, called with the loaded model and the data files."""
