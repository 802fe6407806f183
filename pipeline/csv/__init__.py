"""Answers go in as rows of CSV v2 and come out of them again, unchanged.

Read `file.py` first; `rows.py` has the 20 columns' rules, `check.py` tells every violation, `migrate.py` reads v1.
"""
