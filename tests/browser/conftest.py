"""A real headless Chromium, one for each test process; tests that need it are skipped with the reason where there is none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install 'kipcheck[test]'")

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,1000",
)


class Browser:
    """Chromium with its console and its requests since the last page was opened."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.requests: list[str] = []
        self.console: list[str] = []

    def open(self, address: str) -> None:
        """Open a page, and wait until it says that it is ready."""
        self.driver.get("about:blank")
        self._collect()
        self.requests.clear()
        self.console.clear()
        self.driver.get(address)
        self.wait("document.documentElement.hasAttribute('data-ready')")

    def wait(self, condition: str, *arguments: object, seconds: float = 20) -> None:
        """Wait until the JavaScript expression holds."""
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, seconds, poll_frequency=0.02).until(
            lambda driver: driver.execute_script(f"return Boolean({condition})", *arguments), f"still not: {condition}"
        )

    def run(self, script: str, *arguments: object) -> Any:
        """What a script returns."""
        return self.driver.execute_script(script, *arguments)

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)))"
        )

    def press(self, *keys: str) -> None:
        """Press keys on the page."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()
        self.settle()

    def click(self, selector: str) -> None:
        """Click the first element that the selector finds."""
        self.driver.find_element("css selector", selector).click()
        self.settle()

    def text(self, selector: str) -> str:
        """The text that is shown of the first element that the selector finds."""
        return self.driver.find_element("css selector", selector).text

    def shown(self, selector: str) -> list[str]:
        """The texts of all elements that the selector finds, drawn ones too."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map(each => each.textContent)", selector)

    def complaints(self) -> list[str]:
        """Errors and warnings on the console since the page was opened."""
        self._collect()
        return self.console

    def strangers(self, *own: str) -> list[str]:
        """Requests since the page was opened that went to anywhere but addresses that begin with one of ``own``."""
        self._collect()
        return [each for each in self.requests if not each.startswith((*own, "data:", "blob:", "about:"))]

    def _collect(self) -> None:
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
        self.console += [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def program(*names: str) -> str:
    """Where the first of these programs is; a test without any is skipped."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip(f"{' or '.join(names)} is not installed (Debian: apt-get install chromium chromium-driver)")
    return found


@contextmanager
def started(*flags: str) -> Iterator[Any]:
    """Chromium, driven. A test without any is skipped."""
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium", "chromium-browser", "google-chrome")
    for flag in (*FLAGS, *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(program("chromedriver")))
    driver.set_script_timeout(30)
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with started(f"--user-data-dir={tmp_path_factory.mktemp('profile')}") as driver:
        yield driver


@pytest.fixture
def browser(chromium: Any) -> Browser:
    """The browser on an empty page."""
    return Browser(chromium)


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Callable[..., Browser]:
    """Opens the page of ``kipcheck show`` for captures, at an address that may name a finding or a step."""
    from kipcheck.conformance.reports.page import page as page_of
    from kipcheck.conformance.show import pictures
    from kipcheck.spec.catalogue import CATALOGUE

    def opened(*paths: Path, at: str = "") -> Browser:
        file = tmp_path / "page.html"
        drawn, notes = pictures([str(path) for path in paths])
        file.write_text(page_of(drawn, CATALOGUE, notes), encoding="utf-8")
        browser.open(file.as_uri() + (f"#{at}" if at else ""))
        browser.settle()
        return browser

    return opened
