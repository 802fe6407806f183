"""Everything between a cited URL and the passages of its page.

`fetching` takes a URL and gives bytes, politely and from public web servers only; `reading` makes text of them, in
processes that may be lost; `store.py` keeps pages, traces and runs in one SQLite file; `choosing` cuts pages into
chunks and picks the passages of a record. Read `schema.py` first: the forms, and the reasons why a source was not read.
"""
