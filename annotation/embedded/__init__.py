"""The server's name of before: guardians that run and images that were built still start its parts by it."""

from annotation import server

__path__ = server.__path__
