"""The home folder of the embedded Argilla: secrets, lock, logs, events, versions, backups, and what damage is found.

A path comes in, and what is in the home goes out, checked. Read `folder` first, then `archive`.
"""
