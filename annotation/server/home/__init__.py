"""The home folder of the embedded Argilla: secrets, lock, logs, the log of events and the versions of its software.

A path comes in, and what is in the home goes out, checked. Read `folder` first.
"""
