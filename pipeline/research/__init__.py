"""A topic goes in; a report comes out whose every paragraph ends in sources that were read and checked.

Read `stages/run_stages.py` first: nine stages, each kept when it is done and resumed after any kill. `running` keeps a
run's state, `search` finds pages, `output` lays out and writes the files; `contracts.py` is what others may rely on.

Source: pipeline/contracts/research.md.
"""
