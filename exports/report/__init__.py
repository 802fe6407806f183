"""Figures as people read them: words, tables, Markdown, LaTeX."""
