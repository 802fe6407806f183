"""CSV v2: answers in, rows out and back, every rule checked, and the older table brought over."""
