"""Split units before adjudicators, and their decisions back."""
