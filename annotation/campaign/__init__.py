"""The campaign: its file, and what it needs in Argilla, planned, made, shared and removed."""
