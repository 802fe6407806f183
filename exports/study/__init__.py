"""A study that is repeated every month: what it does next is decided by what is on the disk and in Argilla.

A `study.toml` comes in; the words of existing commands go out, month by month, and what moved between the months.
Read `month` first.
"""
