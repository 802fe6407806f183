"""The files of a research run: artefacts, the report's layout, and the way to the jury."""
