"""What became of a cited source: a reason goes in, one cause comes out, and whether that may count as fabricated.

Source: pipeline/contracts/records.md#states-of-sources.
"""

import re
from typing import Literal, get_args

SourceState = Literal["read", "unread", "unreached", "gone", "no_such_site", "no_address", "unfetched"]
UNRESOLVED: tuple[SourceState, ...] = ("unreached", "no_such_site", "no_address")
"""What earlier versions called `unresolved`, all three."""
Archived = Literal["", "seen", "never", "unknown"]

_Read = Literal[
    "page",  # the page itself
    "snippet",  # what the provider showed of it
    "cited_text",  # what the provider quoted from it
    "added",  # a file that the user has
]
_Unread = Literal[
    "robots",  # robots.txt forbids it, or cannot be had
    "paywall",
    "cookie_wall",
    "captcha",
    "login",
    "empty",  # no text on it
    "error_page",  # a success that tells of an error
    "home_page",  # a redirect ended at the site's first page, or at an overview
    "other_page",  # a short page that has nothing of what its address names
    "not_text",  # an image, a film, an archive
    "too_large",
    "bad_encoding",
    "parser_failed",
    "parser_timeout",
    "redirects",  # more of them than anyone follows
    "too_slow",  # the body began and did not come to its end in time
    "not_web",  # an address of another kind, such as `ftp:` or `doi:`
    "too_long",  # an address of more characters than are read
]
_Unreached = Literal[
    "refused",  # by the guard
    "network",  # nobody there, or the connection broke
    "timeout",
    "no_such_host",  # a look-up found none, and a second one is missing or was made while nobody else answered
]
_Gone = Literal[
    "status_404",
    "status_410",
    "soft_404",  # a success that says that there is no such page
    "parked",  # the domain is for sale, or its site is closed
]
Reason = Literal[_Read, _Unread, _Unreached, _Gone, "no_host_twice", "not_a_url", "not_tried"]
"""Every reason but `status_<n>`, which stands for each status that is no success and has no reason of its own."""

_REASONS: dict[SourceState, object] = {
    "read": _Read,
    "unread": _Unread,
    "unreached": _Unreached,
    "gone": _Gone,
    "no_such_site": Literal["no_host_twice"],  # two look-ups found none, and others were reached meanwhile
    "no_address": Literal["not_a_url"],
    "unfetched": Literal["not_tried"],
}
STATES: dict[str, SourceState] = {reason: state for state, reasons in _REASONS.items() for reason in get_args(reasons)}
NOT_ASKED = "; not asked again after "
"""In the detail of a page that has its reason from others of its host alone."""
# A parser may run out of time because everything else on the machine is busy too.
_MAY_PASS = re.compile(r"parser_timeout|status_(?:408|425|429|5[0-9]{2})", re.ASCII)


def state_of(reason: str) -> SourceState:
    """The state that a source with this reason is in; ValueError where nothing gives this reason."""
    if reason not in STATES and not re.fullmatch(r"status_[0-9]{1,3}", reason, flags=re.ASCII):
        raise ValueError(f"No source has the reason {reason!r}.")
    return STATES.get(reason, "unread")


def may_pass(reason: str) -> bool:
    """Whether another day may mend it, so that the page is tried again; what nobody reached always is."""
    return state_of(reason) in ("unreached", "no_such_site", "unfetched") or bool(_MAY_PASS.fullmatch(reason))


def may_be_fabricated(state: SourceState, archived: str = "") -> bool | None:
    """Whether what became of a source allows to call it fabricated; None where nobody knows, which never does.

    `archived` is what an archive says of one that is gone.
    """
    if state in ("unreached", "unfetched") or (state == "gone" and archived in ("", "unknown")):
        return None
    return state in ("no_such_site", "no_address") or (state == "gone" and archived == "never")
