"""How far scores agree with human ratings, how surely, and whether a judge notices perturbations.

No model is called here.
"""
