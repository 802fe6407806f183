"""CSV files of exports, data frames, decisions and judgements in; ratings as arrays, checked cell by cell, out.

Read `read` first: it finds the task of a file, checks the cells of its rows and gathers responses into the arrays that
agreement is computed from; `frames` does the same for pandas, `decisions`, `judgements` and `provenance` for theirs.
`study` puts all of it together for results, with `runs` and `citejury.toml`'s `definitions`.
"""
