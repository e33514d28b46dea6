"""The papers' baselines: automatic metrics as judges that write nothing, and judges in the form of other papers.

Metrics are counts of words, likelihoods and vectors.
"""
