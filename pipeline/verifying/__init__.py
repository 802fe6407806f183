"""Anybody's report and the stored pages that it cites go in; a verdict on each sentence comes out, without a model.

Read `verify.py` first. `read.py`, `marks.py` and `source_list.py` find out which sentence cites which page; `claim.py`
holds a sentence against pages, with `_wording.py`, `_agreement.py` and `_contradiction.py`; `scores.py` counts for a
whole report.
"""
