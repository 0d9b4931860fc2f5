"""Takes the pictures that the README shows: ``python -m tests.browser.pictures``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from kipcheck.conformance.reports.page import page
from kipcheck.conformance.show import pictures
from kipcheck.spec.catalogue import CATALOGUE

from .conftest import Browser, started

HERE = Path(__file__).parent
TRACE = Path("traces/kafka-4.3.1/static-late-claim")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, started("--hide-scrollbars") as driver:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": 1180, "height": 428, "deviceScaleFactor": 1, "mobile": False}
        )
        file = Path(folder) / "page.html"
        file.write_text(page(pictures([str(TRACE)])[0], CATALOGUE), encoding="utf-8")
        browser = Browser(driver)
        browser.open(file.as_uri())
        browser.settle()
        driver.save_screenshot(str(HERE / "show.png"))


if __name__ == "__main__":
    main()
