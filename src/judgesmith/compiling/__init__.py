"""`judgesmith compile`, `new` and `demo`: from human ratings, or a description, to a saved judge."""
