"""Other projects' judges on the same rows, the same model and the same number of calls; each in its own environment."""
