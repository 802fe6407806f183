"""URLs in, bytes out: guarded, polite, capped, with a reason for whatever was not had."""
