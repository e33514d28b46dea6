"""Judges behind HTTP: what is accepted and how it is answered (`service`), the routes (`app`), metrics, and the process
that listens (`run`).
"""
