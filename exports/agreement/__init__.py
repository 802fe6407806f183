"""Ratings of one task as arrays in, every figure of `agreement.json` out: pure numpy, no file is read here.

`statistics` is the table of statistics; read it first, then `measure`, which puts the figures of a task together.
`labels` and `annotators` hold what the joint bootstrap of `resampling` has a part in: each of their classes names its
estimators and reads its own figures off their resamples; `patterns` is what they count with. `slices`, `judge`,
`consensus` and `disagreements` stand beside them, `schema` is what comes out.
"""
