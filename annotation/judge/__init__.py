"""A model answers the annotators' questions: it is asked about each unit, and what it says is checked.

In comes a file of records; out goes a file of judgements, which `exports results --judge` compares with the jury.
Read `judgements.py` for what is judged and what a judgement holds, then `run.py`.
"""
