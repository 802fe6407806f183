"""The search engines that argilla-server is given, and what they need in its database.

A database's connection, or argilla-server's calls of a search engine, come in; tables, indexes and answers go out. Read
`sql` first.
"""
