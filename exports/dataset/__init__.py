"""An export in; typed Parquet files with splits and a data card out.

`rows` types and sorts the rows on disk and joins where they come from, `splits` deals them to splits, `files` writes
them in batches, `data_card` says what they are. Read `write` first: `write_dataset` goes through all of them.
"""
