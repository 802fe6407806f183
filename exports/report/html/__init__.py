"""The report as one HTML file.

Figures and disagreements come in; elements go out, joined to one page. Read `page` first: it puts the sections
together, each made by a module of its own from `elements`.
"""
