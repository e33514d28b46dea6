"""Judges behind HTTP.

Requests and answers are in `service`, routes in `app`, the listening process in `run`.
"""
