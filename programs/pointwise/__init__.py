"""Judges that ask for one score of one aspect: direct scoring and G-Eval."""
