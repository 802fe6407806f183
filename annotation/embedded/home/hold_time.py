"""For how long what is handed out to an annotator is kept from the others: the server's setting."""

import os
import re

from pipeline.errors import SettingsError

HOLD_SECONDS_SETTING = "CITEJURY_HOLD_SECONDS"
HOLD_SECONDS = 15 * 60
LONGEST_HOLD_SECONDS = 24 * 60 * 60


def hold_seconds() -> int:
    """How long what is handed out is held for her.

    Raises:
        SettingsError: the environment says something else than a number of seconds, or more than a day.
    """
    said = os.environ.get(HOLD_SECONDS_SETTING) or str(HOLD_SECONDS)
    if not re.fullmatch("[0-9]{1,9}", said) or not 1 <= int(said) <= LONGEST_HOLD_SECONDS:
        raise SettingsError(
            f"`{HOLD_SECONDS_SETTING}` is {said!r} and should be a number of seconds, 1 to {LONGEST_HOLD_SECONDS}."
        )
    return int(said)
