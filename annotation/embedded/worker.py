"""`python -m annotation.embedded.worker`, a name that guardians and docker/ know: its jobs."""

from annotation.embedded.server.worker import main

if __name__ == "__main__":
    main()
