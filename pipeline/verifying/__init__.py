"""Reports in, a verdict for each sentence and the pages that it cites out."""
