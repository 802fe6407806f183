"""Ratings of one task and the provenance of their records in; every figure of `agreement.json` and `results.json` out.

Pure numpy, no file is read here. `table` is the table of statistics; read it first, then `agreement` and `results`,
which put the figures of a task together. `labels` and `annotators` hold what the joint bootstrap of `resampling` has a
part in: each of their classes names its estimators and reads its own figures off their resamples. `scales` and
`scaled_labels` are the same of labels that are no yes or no. `agreement_schema` and `results_schema` are what comes
out.
"""
