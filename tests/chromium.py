"""A real browser."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workflow import skip


@contextmanager
def chromium(downloads: Path) -> Iterator:
    """Chromium, with no network but this machine's; skips the test where there is none."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not browser or not driver:
        skip("browser", "chromium and chromedriver are not both on PATH")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-first-run", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", "--window-size=1400,1040",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ):  # fmt: skip
        options.add_argument(argument)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    chrome.set_script_timeout(120)
    try:
        yield chrome
    finally:
        chrome.quit()


def show(chrome, width: int, scheme: str) -> None:
    """scheme: light or dark."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def errors(chrome) -> list[str]:
    """Errors in the browser's console since the last call."""
    return [entry["message"] for entry in chrome.get_log("browser") if entry["level"] == "SEVERE"]


def serious(chrome, within: str = "html") -> list[str]:
    """What an accessibility checker finds serious or critical on the page, or in a part of it."""
    from axe_core_python.selenium import Axe

    violations = Axe().run(chrome, context=within)["violations"]
    return [
        f"{violation['id']}: {violation['nodes'][0]['html'][:200]}"
        for violation in violations
        if violation["impact"] in ("serious", "critical")
    ]
