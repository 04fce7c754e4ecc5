"""A page in a real browser, where there is one."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")


def browse(folder, page, width):
    """Load a page in a frame of a given width; return what the browser measures and its console."""
    (folder / "page.html").write_text(page, encoding="utf-8")
    probe = """<!DOCTYPE html><body>
    <iframe src="page.html" style="width:WIDTHpx;height:900px;border:0"></iframe>
    <script>onload = () => {
      const d = document.querySelector("iframe").contentDocument, root = d.documentElement;
      const width = svg => Math.round(svg.getBoundingClientRect().width);
      const plots = [...d.querySelectorAll(".panels svg")].map(width);
      const beyond = table => table.scrollWidth - table.parentElement.clientWidth;
      const cut = [...d.querySelectorAll("[data-rows]")].map(beyond);
      const scroll = root.scrollWidth + (WIDTH < 640 ? Math.max(0, ...cut) : 0);  // tables are lists there
      document.body.textContent = JSON.stringify({inner: root.clientWidth, scroll, plots});
    }</script>"""
    (folder / "probe.html").write_text(probe.replace("WIDTH", str(width)))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    flags += ["--allow-file-access-from-files", f"--user-data-dir={folder}/profile"]
    command = [CHROMIUM, *flags, "--dump-dom", (folder / "probe.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    measured = re.search(r'\{"inner":(\d+),"scroll":(\d+),"plots":\[([\d,]*)\]\}', done.stdout)
    assert measured, done.stdout
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return int(measured[1]), int(measured[2]), [int(p) for p in measured[3].split(",") if p], console


VOID = {"meta", "link", "br", "img", "hr", "input"}


class Reader(HTMLParser):
    """Checks that tags are closed in order, and keeps what the tests look at."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def check_self_contained(html):
    """Ids are unique, nothing comes from elsewhere, and nothing runs."""
    tags = Reader(html).tags
    ids = [attrs["id"] for _, attrs in tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert not [attrs for tag, attrs in tags if tag == "script" or any(n.startswith("on") for n in attrs)]
    addresses = [v for _, attrs in tags for k, v in attrs.items() if k in ("src", "href")]
    assert all(address.startswith(("#", "data:")) for address in addresses)
    assert not re.search(r"https?:|@import|url\((?!#)", html)
