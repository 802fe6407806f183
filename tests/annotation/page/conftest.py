"""What the tests of the page share."""

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome

from annotation.server.launch import ServerHandle
from tests.support.lossy_link import LossyLink, lossy_link
from tests.support.page_driver import forget


@pytest.fixture(scope="session")
def one_link(argilla_server: ServerHandle) -> Iterator[LossyLink]:
    with lossy_link(argilla_server.url) as found:
        yield found


@pytest.fixture
def link(one_link: LossyLink, browser: Chrome) -> LossyLink:
    """A link as if new: at an address of its own the browser would read and compile Argilla's whole page again."""
    one_link.begin()
    forget(browser, one_link.url)
    return one_link
