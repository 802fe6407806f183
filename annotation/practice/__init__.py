"""A round of known cases before production: each answer is explained at once, and a pass mark opens the rest."""
