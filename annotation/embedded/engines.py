"""The search engines of ours, and which of them the server's settings name."""


def register_engine() -> None:
    """Make argilla-server know the engine that `ARGILLA_SEARCH_ENGINE` names, if it is one of ours.

    Everything that looks up the engine must have called this: the server, its worker, and what fills an index.
    """
    import annotation.embedded.search  # noqa: F401  # also teaches the database's connections what our own routes need
