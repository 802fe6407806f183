"""`python -m annotation.embedded.web`, a name that guardians and docker/ know: its page and REST API."""

from annotation.embedded.server.web import main

if __name__ == "__main__":
    main()
