"""Submitted responses in, three CSV files and a manifest out.

`find` names the datasets of a workspace, `fetch` reads their records page by page into a spool on disk, `_update` only
those that changed since the earlier export, `tables` makes rows of responses, `_provenance` says where records come
from, `annotators` puts pseudonyms for names, `compare` says what the export changes in its folder, and `folder` swaps
the finished folder in as a whole. Read `write` first: `export_csv` goes through all of them.
"""
