"""The processes of the embedded Argilla, from start to end."""
