"""Judges that compare outputs: with graded references, or with each other."""
