"""Makes a server of the tests hash passwords in a millisecond; by intention a real hash takes a fifth of a second.

Python imports a module of this name at its start where PYTHONPATH names the folder
(https://docs.python.org/3/library/site.html).
"""

import functools

import bcrypt

bcrypt.gensalt = functools.partial(bcrypt.gensalt, 4)  # type: ignore[assignment]  # the fewest rounds there are
