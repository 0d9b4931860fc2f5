"""Takes the pictures that the README shows: ``python -m tests.browser.pictures``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from kipcheck.conformance.reports.page import page
from kipcheck.conformance.show import pictures
from kipcheck.spec.catalogue import CATALOGUE

from .conftest import FLAGS, Browser, program

HERE = Path(__file__).parent
TRACE = Path("traces/kafka-4.3.1/static-late-claim")


def main() -> None:
    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium", "chromium-browser", "google-chrome")
    for flag in (*FLAGS, "--hide-scrollbars"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory() as folder, webdriver.Chrome(options=options, service=Service(program("chromedriver"))) as driver:
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
