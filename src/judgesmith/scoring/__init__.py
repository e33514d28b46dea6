"""`judgesmith score`: files of rows in, the same rows with verdicts out."""
