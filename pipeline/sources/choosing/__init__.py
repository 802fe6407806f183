"""Pages in, passages out: chunks, ranked, a few of them chosen for each answer."""
