"""The history of every response, in Argilla's own database: a change goes in, and nothing that is in it changes.

Read `tables` first: triggers write it, so that no program and no route can change a response unseen. `pages` reads it.
"""
