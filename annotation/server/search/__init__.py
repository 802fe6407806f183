"""Argilla's searches as SQL on its own tables.

A search request as argilla-server has read it comes in; conditions, orders and pages of record ids go out. Read
`filters` first, then `orders`. The full text is found by an index of our own: `query` reads what people type, `words`
says what a word is, and `text_index` keeps the words of SQLite or PostgreSQL in step.
"""
