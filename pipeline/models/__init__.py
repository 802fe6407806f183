"""Questions to a model whose answer is JSON of one schema."""
