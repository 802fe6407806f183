"""One export row per task: the columns of seed 001 in their order, task columns first, then the shared ones."""
