"""What an answer cites: addresses in text, marks with the lists that resolve them, and where a mark may stand.

In: texts as models and people write them. Out: canonical URLs, sites and ids; marks with their places; places in
Markdown for marks of ours. Read `marks.py`.
"""
