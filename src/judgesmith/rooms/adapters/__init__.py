"""Saved judges inside frameworks that teams have: Inspect, DeepEval, pytest.

A row without a score is an error there, never 0. (MLflow's scorer stands in `mlflow.logging`.)
"""
