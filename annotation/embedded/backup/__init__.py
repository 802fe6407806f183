"""Backups, and what becomes of them."""
