"""The search engine's own connections to the server's database.

argilla-server keeps a connection of its pool while it waits for the search engine. If the engine took its connection
from the same pool, as many searches at once as the pool has connections would wait for each other until all of them
time out, and with them everybody else: twenty annotators who ask for their next records are enough.
"""

from argilla_server.settings import settings
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

search_connections = create_async_engine(settings.database_url, **settings.database_engine_args)
SearchSession = async_sessionmaker(autocommit=False, expire_on_commit=False, bind=search_connections)
