"""Everything between a cited URL and the passages of its page.

`fetch` takes a URL and gives bytes, politely and from public web servers only (`guard`); `extract` makes text of them,
in processes that may be lost; `store` keeps pages, traces and runs in one SQLite file; `chunk` and `choose` pick the
passages of a record. Read `schema` first: the forms, and the reasons why a source was not read.
"""
