"""The bytes of a page go in; its main text, title and language come out, or why there is nothing worth reading.

Read `extract.py` first. `extractor.py` runs it in processes of its own, since hostile pages hang and crash parsers.
"""
