"""The nine stages of a research run, from the topic to the audited report."""
