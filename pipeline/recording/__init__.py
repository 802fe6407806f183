"""Answers and passages in, canonical records out, in the one citation form."""
