"""Exports in; figures, tables and report out, as files for `exports agreement` and as objects for notebooks.

`files` reads, measures and writes a folder; `notebook` gives the same figures as data frames and HTML. Read `files`
first.
"""
