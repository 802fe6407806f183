"""Bytes in, text out: HTML, PDF and plain text, in processes that may be killed."""
