"""Choice between the judges that a run found, where agreement alone does not decide."""
