"""The errors of the whole project.

A message is one plain sentence or two: what is wrong, where, what was found, what to do. It never holds a key.
The root command is the only place that turns these into output.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.core.schema import ErrorKind


class CitejuryError(Exception):
    """Something the user can mend; the message says how."""


class InputError(CitejuryError):
    """What the user gave is wrong: a file, a row, a value."""


class BadRowsError(InputError):
    """Many rows of one file are wrong; the message lists every one of them."""

    def __init__(self, summary: str, rows: Sequence[str]) -> None:
        self.rows = tuple(rows)
        separator = "\n  " if len(rows) > 1 else " "
        super().__init__(separator.join([summary, *rows]))


class EncodingError(InputError):
    """A file is not in UTF-8; `name` is what people call the encoding that it looks like, `codec` what Python does."""

    def __init__(self, message: str, name: str, codec: str) -> None:
        self.name, self.codec = name, codec
        super().__init__(message)


class TornFrameError(InputError):
    """The end of a file cuts off its last frame, as a kill in the middle of writing or a broken copy leaves it."""


class ProviderError(CitejuryError):
    """A provider gave no answer that can be read, or was not asked at all.

    `kind` says why; `bad_response` is a payload that is an error, not JSON, or of an unknown shape. `status` is the
    HTTP status where there was one, `attempts` the number of requests that were made. `is_lost` says that an answer
    which may have to be paid broke off on its way, or was not waited for.
    """

    def __init__(
        self,
        message: str,
        kind: "ErrorKind" = "bad_response",
        *,
        status: int | None = None,
        attempts: int = 1,
        is_lost: bool = False,
    ) -> None:
        self.kind = kind
        self.status = status
        self.attempts = attempts
        self.is_lost = is_lost
        super().__init__(message)


class SettingsError(CitejuryError):
    """A setting or an environment variable is missing or cannot be read."""


class OutputError(CitejuryError):
    """The place to write to holds something else, or cannot be written."""


class ArgillaError(CitejuryError):
    """Argilla did not do what was asked."""


class ServerUnreachableError(ArgillaError):
    """No server answers at the address."""


class NotAllowedError(ArgillaError):
    """The key is wrong, or may not do this."""


class NotFoundError(ArgillaError):
    """No such workspace, dataset, user or record."""


class RecordsMovedError(ArgillaError):
    """Records were deleted while they were read, so some of the others were passed over."""


class NotInstalledError(CitejuryError):
    """A library is not installed: one of an extra, or one for which there is no wheel for this machine."""


class ServerStartError(CitejuryError):
    """The embedded Argilla cannot start here."""
