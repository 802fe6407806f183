"""Units on which annotators differ in, before adjudicators; their decisions out.

`adjudication` says what adjudicators are shown and what their answers decide; `push` puts that into Argilla and reads
it back. Read `adjudication` first.
"""
