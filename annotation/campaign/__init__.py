"""What a campaign needs: a plan of its hours and its sample, and in Argilla workspaces, datasets and people.

In comes the table `[campaign]` of citejury.toml, or options of a command, and for a plan the records; out go a plan,
what Argilla has afterwards, and a sheet for each annotator. Read `file` for what a campaign is, then `setup_plan` and
`setup`; for a study before it begins read `plan`, then `narratives`, `hours` and `power`.
"""
