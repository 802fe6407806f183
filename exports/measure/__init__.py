"""Exports in; figures, tables and report out, as files for commands and as objects for notebooks.

`files` is all of `exports agreement`, `results` all of `exports results`: each reads, measures and writes a folder.
`notebook` gives the same figures as data frames and HTML. Read `files` first.
"""
