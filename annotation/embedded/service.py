"""`python -m annotation.embedded.service`, a name that guardians and docker/ know: a part on PostgreSQL."""

import sys

from annotation.embedded.server.service import main

if __name__ == "__main__":
    sys.exit(main())
