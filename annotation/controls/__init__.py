"""Units whose answers are known, mixed among the others, and what they tell about each annotator.

Records go in, or a file of controls that a person has confirmed; records that look like all others go to Argilla; each
annotator's sensitivity, specificity and self-consistency come out. Read `scores.py` for what is counted.
"""
