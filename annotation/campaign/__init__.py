"""What a campaign needs in Argilla: workspaces, datasets and people, planned, made, shared and removed.

In comes the table `[campaign]` of citejury.toml, or options of a command; out go a plan, what Argilla has afterwards,
and a sheet for each annotator. Read `file.py` for what a campaign is, then `plan.py` and `setup.py`.
"""
