"""Agreement of scores with human ratings, its uncertainty, and discernment of perturbations.

No model is called here.
"""
