"""Submitted responses in, three CSV files and a manifest out."""
