"""A run folder goes in; its cited pages end up in the store, and records for the jury come out.

Read `run_sources.py` first: it needs no network. `gather.py` fetches what the store lacks, many hosts at once.
"""
