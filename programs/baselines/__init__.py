"""The automatic metrics that the papers compare with, as judges that write nothing: by counts of words, by likelihoods,
by the vectors of tokens."""
