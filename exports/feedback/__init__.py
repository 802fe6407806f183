"""Each annotator's own differences from what most others answered, and the rules concerned, as a page for her alone.

In come ratings with their texts and, where there are some, adjudicators' decisions; out goes a page for each annotator,
in her language, without anybody's name. Read `_differences` first.
"""
