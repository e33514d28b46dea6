"""What the papers compare with: automatic metrics as judges that write nothing (counts of words, likelihoods, vectors),
and judges whose answers have the form of another paper's.
"""
