"""Argilla on one machine, or its parts on PostgreSQL: started by `annotation serve` and by `docker/`."""
