"""The search engines of ours, and which of them the server's settings name."""


def register_engine() -> None:
    """Make argilla-server know the engine that `ARGILLA_SEARCH_ENGINE` names as ours.

    Everything that looks up the engine must have called this: the server, its worker, and what fills an index.
    """
    from argilla_server.settings import settings

    import annotation.embedded.engines.search  # noqa: F401  # also teaches the database's connections what triggers call

    if settings.search_engine_is_opensearch:
        import annotation.embedded.engines.open_search  # noqa: F401
