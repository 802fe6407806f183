"""Submitted responses in, three CSV files and a manifest out.

`find` names the datasets of a workspace, `fetch` reads their records page by page into a spool on disk, `tables` makes
rows of responses, `annotators` puts pseudonyms for names, `folder` swaps the finished folder in as a whole. Read
`write` first: `export_csv` goes through all of them.
"""
