"""Narratives times providers into a run folder, resumable after a kill at any moment."""
