"""Records in, units in Argilla out: only what is new or changed, never over an answer."""
