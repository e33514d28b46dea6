"""`judgesmith sync`: labels from where people give them, and verdicts back to there."""
