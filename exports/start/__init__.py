"""First steps: the demo, a project of one's own, and what is missing here."""
