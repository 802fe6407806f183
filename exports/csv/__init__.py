"""Submitted responses in, three CSV files and a manifest out.

`schema` has the rows and the manifest. `fetch` finds the datasets of a workspace and reads their records page by page
into a spool on disk, `update` only those that changed since the earlier export; `rows` makes rows of responses,
`annotators` puts pseudonyms for names, `compare` says what the export changes in its folder, and `folder` swaps the
finished folder in as a whole. Read `write` first: `export_csv` goes through all of them.
"""
