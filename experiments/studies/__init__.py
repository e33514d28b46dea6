"""`judgesmith study`: arms compared on the same held-out rows."""
