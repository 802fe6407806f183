from typing import get_args

import pytest

from pipeline.citations.addresses import reason_without_page
from pipeline.records.causes import STATES, SourceState, may_be_fabricated, may_pass, state_of
from pipeline.records.schema import Source


@pytest.mark.parametrize(
    ("reason", "state", "tried_again"),
    [
        ("page", "read", False),
        ("robots", "unread", False),
        ("too_large", "unread", False),
        ("status_403", "unread", False),
        ("status_503", "unread", True),
        ("parser_timeout", "unread", True),
        ("timeout", "unreached", True),
        ("network", "unreached", True),
        ("refused", "unreached", True),
        ("no_such_host", "unreached", True),
        ("status_404", "gone", False),
        ("soft_404", "gone", False),
        ("no_host_twice", "no_such_site", True),
        ("not_a_url", "no_address", False),
        ("not_tried", "unfetched", True),
    ],
)
def test_each_reason_is_one_cause_and_what_nobody_reached_is_tried_again(
    reason: str, state: str, tried_again: bool
) -> None:
    assert (state_of(reason), may_pass(reason)) == (state, tried_again)


def test_only_what_never_was_may_count_as_fabricated() -> None:
    assert set(STATES.values()) == set(get_args(SourceState))
    archive = ("", "seen", "never", "unknown")
    cases = [(state, said) for state in get_args(SourceState) for said in archive]
    found = {case for case in cases if may_be_fabricated(*case)}
    not_known = {case for case in cases if may_be_fabricated(*case) is None}
    assert not_known - {("gone", ""), ("gone", "unknown")} == {
        (state, said) for state in ("unreached", "unfetched") for said in archive
    }
    never = {(state, said) for state in ("no_such_site", "no_address") for said in archive}
    assert found == never | {("gone", "never")}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("no url", "not_a_url"),
        ("http://[", "not_a_url"),
        ("note: see the appendix", "not_a_url"),
        ("", "not_a_url"),
        ("http://ann:secret@a.example/", "refused"),
        ("ftp://a.example/x", "not_web"),
        ("doi:10.1000/182", "not_web"),
        ("mailto:a@b.example", "not_web"),
        ("https://a.example/" + "a" * 9000, "too_long"),
    ],
)
def test_an_address_of_another_kind_is_no_missing_one(url: str, reason: str) -> None:
    assert reason_without_page(url) == reason


@pytest.mark.parametrize(
    ("reason", "url", "found"),
    [
        ("timeout", "http://a.example/", ("unreached", "timeout")),
        ("no_such_host", "http://a.example/", ("unreached", "no_such_host")),  # it was looked up once
        ("", "http://a.example/", ("unreached", "")),
        ("some reason of somebody's", "http://a.example/", ("unreached", "some reason of somebody's")),
        ("not_a_url", "see below", ("no_address", "not_a_url")),
        ("not_a_url", "ftp://a.example/", ("unread", "not_web")),
    ],
)
def test_what_earlier_versions_called_unresolved_is_read_by_its_reason(
    reason: str, url: str, found: tuple[str, str]
) -> None:
    source = Source.model_validate({"n": 1, "url": url, "host": "", "state": "unresolved", "reason": reason})
    assert (source.state, source.reason) == found
    assert Source.model_validate_json(source.model_dump_json()) == source
