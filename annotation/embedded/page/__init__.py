"""Argilla's page as our server gives it out: scripts and a style of ours beside those of argilla-frontend 2.8.0.

argilla-server's copy of the page comes in; the page with our scripts in it goes out. Read `scripts` first: it has the
list of the scripts and what each is for. They are plain JavaScript without a build; what they say is in
`annotation/locales/<language>.toml` under `[page]`, and the rules between labels come from `annotation.labels`.
"""
