"""What all screens have: navigation, themes, addresses, and no errors."""

import re

import pytest
from playwright.async_api import expect

from tests.ui.chromium import OpenPage

pytestmark = [pytest.mark.slow, pytest.mark.wall]


async def test_the_configuration_is_shown_and_the_theme_is_kept(open_page: OpenPage) -> None:
    page = await open_page("#/configuration")
    await expect(page.get_by_role("heading", name="Configuration")).to_be_focused()
    await expect(page.get_by_label("Configuration", exact=True)).to_contain_text('"profiles"')
    await expect(page.get_by_role("link", name="Configuration")).to_have_attribute(
        "aria-current", "page"
    )

    theme = page.get_by_role("button", name=re.compile("^Theme"))
    await theme.click()
    await theme.click()
    await page.reload()
    await expect(theme).to_have_text("Theme: dark")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")


async def test_an_address_that_is_not_there_says_so(open_page: OpenPage) -> None:
    page = await open_page("#/no-such-screen")
    await expect(page.get_by_text("There is no screen no-such-screen.")).to_be_visible()


async def test_the_keyboard_skips_the_navigation(open_page: OpenPage) -> None:
    page = await open_page("#/configuration")
    await expect(page.get_by_role("heading", name="Configuration")).to_be_focused()
    await page.get_by_role("link", name="Skip to the content").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("main")).to_be_focused()
    assert page.url.endswith("#/configuration")
