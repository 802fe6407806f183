"""Deep research: a topic in, a report whose every sentence is cited and checked out.

Source: pipeline/contracts/research.md.
"""
