import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from tests.clients.cluster import running_cluster, until_nothing
from tests.service.ui.chromium import OpenPage, Tabs, chromium

LINK: Final = re.compile(r"page at (\S+)")


@pytest.fixture(scope="session")
def sample_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, str]]:
    """Yield the kubeconfig of ``berth up --sample``, the address of its page, and a session."""
    folder = tmp_path_factory.mktemp("up")
    with running_cluster(folder, "--sample", "--nodes=20", "--ui-port=0") as (kubeconfig, output):

        def lacks() -> list[str]:
            return [] if LINK.search(output.read_text()) else ["no link to the page"]

        until_nothing(lacks)
        link = LINK.findall(output.read_text())[0]
        answer = httpx.get(link, follow_redirects=False)
        assert answer.is_redirect, answer.text
        parts = urlsplit(link)
        yield kubeconfig, f"{parts.scheme}://{parts.netloc}/ui/", answer.headers["set-cookie"]


@pytest.fixture
async def open_page(sample_cluster: tuple[Path, str, str]) -> AsyncIterator[OpenPage]:
    """Yield what opens tabs of a new browser. An error in one fails the test at its end."""
    _, url, session = sample_cluster
    name, value = session.split(";")[0].split("=", 1)
    async with chromium() as browser:
        context = await browser.new_context(locale="en-GB", timezone_id="UTC")
        await context.add_cookies([{"name": name, "value": value, "url": urljoin(url, "/")}])
        tabs = Tabs(context, url)
        yield tabs.open
        await context.close()
        assert not tabs.errors
