"""``python -m tests.service.ui.frame_times [NODES...]``: how smoothly a Chromium pans the map of
nodes.

Prints, for each number of nodes, the time from one frame to the next while the map is panned and
zoomed, and how long drawing a frame takes. Headless Chromium draws with the processor.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Sequence
from statistics import median, quantiles
from typing import Any, Final

from playwright.async_api import Page, expect

from berth.runtime.tables import Table, show
from tests.service.ui.chromium import chromium
from tests.service.ui.many_nodes import page_with

SIZES: Final = (5_000, 50_000)
FRAMES: Final = 300
MOVES: Final = (
    ("pan, zoom 1.2", "pan", "zoom=1.2&x=0.5&y=0.5"),
    ("pan, zoom 3", "pan", "zoom=3&x=0.5&y=0.5"),
    ("pan, zoom 8, filters", "pan", "zoom=8&x=0.5&y=0.5&pod=default/too-large"),
    ("zoom out and in", "zoom", "zoom=8&x=0.5&y=0.5"),
)
"""What is done, by which events, and the address at first."""
HEADINGS: Final = (
    *("NODES", "WHAT", "FRAME, MEDIAN (ms)", "95%", "LONGEST"),
    *("DRAWING, MEDIAN (ms)", "95%", "LONGEST"),
)

TIMED: Final = """
  const ask = window.requestAnimationFrame.bind(window);
  window.drawn = [];
  window.requestAnimationFrame = (run) => ask((now) => {
    const begun = performance.now();
    run(now);
    window.drawn.push(performance.now() - begun);
  });
"""
"""Times what the page does in each frame."""

MOVE: Final = """
async ([frames, kind]) => {
  const canvas = document.querySelector(".map canvas");
  const box = canvas.getBoundingClientRect();
  const at = { bubbles: true, pointerId: 1, button: 0, pointerType: "mouse" };
  const send = (type, x, y) => canvas.dispatchEvent(
    new PointerEvent(type, { ...at, clientX: box.x + x, clientY: box.y + y }));
  canvas.setPointerCapture = () => {};
  let [x, y] = [box.width / 2, box.height / 2];
  if (kind === "pan") send("pointerdown", x, y);
  window.drawn.length = 0;
  const deltas = [];
  let before = null;
  for (let frame = 0; frame < frames; frame += 1) {
    await new Promise((next) => requestAnimationFrame((now) => {
      if (before !== null) deltas.push(now - before);
      before = now;
      next();
    }));
    if (kind === "pan") {
      x += 5 * Math.cos(frame / 20);
      y += 3 * Math.sin(frame / 15);
      send("pointermove", x, y);
    } else {
      const deltaY = frame % 100 < 50 ? 30 : -30;
      canvas.dispatchEvent(new WheelEvent("wheel", {
        bubbles: true, cancelable: true, deltaY, clientX: box.x + x, clientY: box.y + y }));
    }
  }
  if (kind === "pan") send("pointerup", x, y);
  await new Promise((saved) => setTimeout(saved, 500));
  return { deltas, at: location.hash, drawn: window.drawn.filter((each) => each > 0.05) };
}
"""


async def measure(page: Page, kind: str) -> list[str]:
    """Move the map for FRAMES frames; return what that took, in milliseconds."""
    found: dict[str, Any] = await page.evaluate(MOVE, [FRAMES, kind])
    assert "zoom=" in found["at"], "the map has not moved"
    return [f"{each:.1f}" for times in (found["deltas"], found["drawn"]) for each in summed(times)]


def summed(times: list[float]) -> tuple[float, float, float]:
    return median(times), quantiles(times, n=20)[-1], max(times)


async def rows(sizes: Sequence[int]) -> AsyncIterator[list[str]]:
    """Yield the rows of the table."""
    async with chromium() as browser:
        for nodes in sizes:
            async with page_with(nodes) as link:
                page = await browser.new_page(viewport={"width": 1280, "height": 800})
                await page.add_init_script(TIMED)
                await page.goto(link)
                for what, kind, query in MOVES:
                    await page.goto("about:blank")
                    await page.goto(f"{link.partition('?')[0]}ui/#/cluster?{query}")
                    canvas = page.get_by_role("application")
                    await expect(canvas).to_have_accessible_name(re.compile(f"^{nodes:,} nodes"))
                    yield [f"{nodes:,}", what, *await measure(page, kind)]
                await page.close()


async def main(sizes: Sequence[int]) -> None:
    table = Table(*HEADINGS, right=range(2, len(HEADINGS)))
    async for row in rows(sizes):
        table.add_row(*row)
    show(table, pipe_width=120)


if __name__ == "__main__":
    asyncio.run(main(tuple(map(int, sys.argv[1:])) or SIZES))
