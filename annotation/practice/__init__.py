"""A round of known cases before production: each answer is explained at once, and a pass mark opens the rest.

In come the cases, ours (`annotation/locales/practice/<language>.toml`) or the lead's, and `[campaign.practice]`; out go
records in the round's datasets, and what each person's first answers came to. Read `cases` first, then `round`.
"""
