"""`python -m annotation.embedded.guardian`, a name that guardians and docker/ know: what starts its parts."""

import sys

from annotation.embedded.server.guardian import main

if __name__ == "__main__":
    sys.exit(main())
