"""Pages, traces and runs in one SQLite file."""
