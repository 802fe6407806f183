"""The annotators' pending queue."""
