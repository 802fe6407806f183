"""A machine that answers the annotators' questions: by counting words, or by asking a model.

In comes a file of records; out goes a file of judgements, which `push --suggestions` fills in and `exports agreement
--judge` compares with the jury. Read `judgements.py` for what is judged and what a judgement holds, then `run.py`.
"""
