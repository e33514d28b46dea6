"""A panel: members that ask for the same judgement in different forms, or several models, averaged."""
