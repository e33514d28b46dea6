"""Judges in MLflow: logged runs, registered judges, scorers, and traces as a queue of rows."""
