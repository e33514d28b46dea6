"""`judgesmith discern --check`: what moves a judge's scores though nothing has changed that counts."""
