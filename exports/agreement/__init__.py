"""Ratings of one task as arrays in, every figure of `agreement.json` out: pure numpy, no file is read here.

`measure` puts the figures of a task together; read it first. `_labels` and `annotators` hold what the joint bootstrap
of `_resampling` has a part in: each of their classes names its statistics and reads its own figures off their
resamples. `_patterns` and `coefficients` are what all of them count with. `_slices`, `judge`, `consensus` and
`disagreements` stand beside them, `cautions` says what to mind, `schema` is what comes out.
"""
