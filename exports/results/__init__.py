"""What the jury found: votes and the provenance of their records in, every figure of `results.json` out.

Pure numpy, no file is read here. `measure` puts the figures together; read it first. `study` is what goes in, `schema`
what comes out.
"""
