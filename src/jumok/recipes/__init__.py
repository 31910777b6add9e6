"""Whole jobs, the same for every task and a file a task: training, exporting, evaluating. Imports nothing itself."""
