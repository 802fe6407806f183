"""Answers in, stored pages and canonical records out."""
