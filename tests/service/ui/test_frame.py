"""What all screens have: navigation, themes, addresses, and no errors."""

import re
from typing import Final

import pytest
from playwright.async_api import expect

from tests.service.ui.chromium import OpenPage
from tests.service.ui.static_page import ANSWERS, STATIC, static_page

pytestmark = [pytest.mark.slow, pytest.mark.wall]

SCREENS_WITH_STYLE: Final = """
async () => {
  const { SCREENS } = await import("./js/screens.js");
  return SCREENS.filter(({ hasStyle }) => hasStyle).map(({ name }) => name);
}
"""
OUTER_RULES: Final = """
async (name) => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(await (await fetch(`css/${name}.css`)).text());
  return [...sheet.cssRules].map((rule) => rule.selectorText ?? rule.cssText);
}
"""


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


async def test_a_stylesheet_of_a_screen_has_rules_for_this_screen_only() -> None:
    async with static_page({}) as tab:
        page = await tab.open("#/nowhere")
        names = await page.evaluate(SCREENS_WITH_STYLE)
        files = {each.name.removesuffix(".css") for each in (STATIC / "css").iterdir()}
        assert files == {"base", "tables", *names}
        for name in names:
            assert await page.evaluate(OUTER_RULES, name) == [f".screen.{name}"]


async def test_overview_looks_the_same_after_other_screens() -> None:
    async with static_page(ANSWERS) as tab:
        page = await tab.open("#/overview")
        legend = page.locator(".chart .legend").first
        await expect(legend).to_be_visible()
        alone = await legend.bounding_box()
        for name in await page.evaluate(SCREENS_WITH_STYLE):
            await page.evaluate("name => { location.hash = `#/${name}`; }", name)
            await expect(page.locator(f'link[href="css/{name}.css"]')).to_have_count(1)
        await page.evaluate("location.hash = '#/overview'")
        await expect(legend).to_be_visible()
        assert await legend.bounding_box() == alone
