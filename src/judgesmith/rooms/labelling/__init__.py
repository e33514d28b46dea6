"""Labelling of rows by people, on a page of this machine.

Questions are in `task`, rows in `units` and `order`, the database in `store`. Agreement of raters is in `agreement` and
`studies`, the page and its gate in `app`, exported labels in `export`, the listening process in `run`.
"""
