"""A topic goes in; a report comes out whose every paragraph ends in sources that were read and checked.

Read `stages.py` first: nine stages, each kept when it is done and resumed after any kill. In their order: `intake`,
`pages`, `passages`, `claims`, `rounds`, `write`, `report`, `audit`; `run` and `journal` keep a run's state,
`artefacts` has its files, and `contracts` what others may rely on.

Source: pipeline/contracts/research.md.
"""
