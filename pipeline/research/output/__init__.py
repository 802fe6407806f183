"""A finished run's values go in; the files that people, programs and the jury read come out.

Read `artefacts.py` first: which file is where, and what it holds. `layout.py` makes the report, `to_answer.py` the
answer and record for the jury.
"""
