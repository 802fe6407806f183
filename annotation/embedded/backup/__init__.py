"""Backups, and what becomes of them: a home, a database in PostgreSQL, the copy before an upgrade.

A home comes in and one file goes out, and the other way round. Read `archive` first.
"""
