"""Records in, machine judgements out."""
