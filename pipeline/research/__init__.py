"""Deep research (seeds 003 and 004): a topic in, a report whose every sentence is cited and checked out."""
