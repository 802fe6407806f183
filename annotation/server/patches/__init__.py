"""What we change in argilla-server 2.8.0, each where it was not good enough, and what it serves and searches besides.

argilla-server as it is installed comes in; its app goes out changed. Read `table` first: every change is a row of it.
These modules import argilla-server, so `web.loading` is where they are imported.
"""
