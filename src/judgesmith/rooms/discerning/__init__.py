"""`judgesmith discern`: pairs of texts, their scores, and what they say of a judge."""
