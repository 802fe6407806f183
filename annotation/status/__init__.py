"""How far the annotators are."""
