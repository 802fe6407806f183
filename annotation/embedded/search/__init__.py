"""Argilla's searches as SQL on its own tables.

A search request as argilla-server has read it comes in; conditions, orders and pages of record ids go out. Read
`filters` first, then `sorting`. The full text is found by an index of our own: `_query_parser` reads what people type,
`_tokenizer` says what a word is, and `text_index` keeps the words of SQLite or PostgreSQL in step.
"""
