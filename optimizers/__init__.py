"""How a judge is compiled: the agreement objective, the leak-free search, and what is reported of it."""
