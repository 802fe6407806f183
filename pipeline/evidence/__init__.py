"""Quotes that a model gives, held against the pages that it was shown (seed 002)."""
