"""Which of the judges that a run came to is the one to use, where agreement alone does not say."""
