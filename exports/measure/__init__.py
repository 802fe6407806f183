"""Files in; every figure, table and report on agreement out."""
