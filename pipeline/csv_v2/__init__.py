"""Seed 000's table: answers in, rows out and back, every rule checked, and the older table brought over."""
