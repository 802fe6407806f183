"""Narratives and topics in; answers with citations, their pages, checked claims and canonical records out."""
