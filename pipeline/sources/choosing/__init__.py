"""Stored pages and a record go in; the record comes out with its sources' states and its best passages.

Read `shelf.py` first, then `select.py`: every page that was read gets its best passage, the rest follow by rank.
"""
