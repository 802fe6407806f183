"""A study from its narratives to its report, once or every month: its file, what is left to do, what moved.

`file` reads study.toml and words the commands, `work` runs them as far as they go now, `trend` compares months. Read
`work` first.
"""
