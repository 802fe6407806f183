"""Narratives times providers into a run folder that goes on after a kill at any moment; then the pages that it cites.

In come a CSV file of narratives and a source of answers: the providers themselves (`ask_live`) or a folder of stored
payloads. Out comes a folder with one CSV v2 a provider, `errors.jsonl`, `citations.jsonl` and
`manifest.json`; `summary` reads its payloads again by today's rules. Read `run` first: `ask_narratives` opens the
folder, and workers put call after call to the source and write down what came back. `index` knows what stands in a
provider's CSV without reading it. From a run folder `run_sources` makes records for the jury, with the pages that
`gather` fetches and reads.
"""
