"""Argilla's searches as SQL on its own tables."""
