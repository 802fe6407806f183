"""What became of a cited source: one reason each, and the one state that the reason stands for.

Source: pipeline/contracts/records.md#states-of-sources.
"""

import re
from typing import Literal

from pipeline.records import SourceState

Reason = Literal[
    "page",
    "snippet",
    "cited_text",
    "added",
    "status_404",
    "status_410",
    "robots",
    "paywall",
    "cookie_wall",
    "captcha",
    "login",
    "empty",
    "error_page",
    "not_text",
    "too_large",
    "bad_encoding",
    "parser_failed",
    "parser_timeout",
    "redirects",
    "too_slow",
    "refused",
    "no_such_host",
    "network",
    "timeout",
    "not_a_url",
    "not_tried",
]
"""Every reason but `status_<n>`, which stands for each status that is no success and has no reason of its own."""

STATES: dict[Reason, SourceState] = {
    "page": "read",  # the page itself
    "snippet": "read",  # what the provider showed of it
    "cited_text": "read",  # what the provider quoted from it
    "added": "read",  # a file that the user has
    "status_404": "gone",
    "status_410": "gone",
    "robots": "unread",  # robots.txt forbids it, or cannot be had
    "paywall": "unread",
    "cookie_wall": "unread",
    "captcha": "unread",
    "login": "unread",
    "empty": "unread",  # no text on it
    "error_page": "unread",  # a success that says that there is nothing
    "not_text": "unread",  # an image, a film, an archive
    "too_large": "unread",
    "bad_encoding": "unread",
    "parser_failed": "unread",
    "parser_timeout": "unread",
    "redirects": "unread",  # more of them than anyone follows
    "too_slow": "unread",  # the body began and did not come to its end in time
    "refused": "unresolved",  # by the guard
    "no_such_host": "unresolved",
    "network": "unresolved",  # nobody there, or the connection broke
    "timeout": "unresolved",
    "not_a_url": "unresolved",
    "not_tried": "unfetched",
}
READ = ("page", "added")
"""The reasons of pages whose text is in the store."""
STATUS = re.compile(r"status_[0-9]{1,3}", re.ASCII)


def state_of(reason: str) -> SourceState:
    """The state that a source with this reason is in.

    Raises:
        ValueError: nothing gives this reason.
    """
    for known, state in STATES.items():
        if reason == known:
            return state
    if STATUS.fullmatch(reason):
        return "unread"
    raise ValueError(f"No source has the reason {reason!r}.")
