"""What is fitted to scores that are already there: weights of criteria, annotators, levels and candidates."""
