"""Units on which annotators differ in, before adjudicators; their decisions out.

`adjudication` says what an adjudicator is shown and what her answers decide; `push` puts that into Argilla and reads it
back. Read `adjudication` first.
"""
