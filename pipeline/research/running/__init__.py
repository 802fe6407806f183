"""A research run under way: its journal, its limits, its model, and what it works with."""
