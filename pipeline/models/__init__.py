"""A question with a JSON schema goes to a model; a checked value comes out, or why there is none.

Read `structured.py` first: which model, in which form it is asked. `completion.py` finds the JSON in what it said;
`evidence.py` checks that the quotes in it stand on the pages that it was shown. `asking.py` asks many questions, each
distinct one once, below a budget, and keeps what was answered in a file.
"""
