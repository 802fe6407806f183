"""The vocabulary of all three packages: errors, schema, files, lines, tables, terminal.

In: nothing of ours. Out: what every other folder may use. Read `schema.py` first, then `errors.py`.
"""
