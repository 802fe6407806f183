"""Units whose answers are known, mixed among the others, and what they tell about each annotator."""
