"""Check that every local page, file and anchor of a built site is there: python docs/links.py FOLDER."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Links(HTMLParser):
    """What a page links to, and the anchors that it has."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.anchors = set(), {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        self.targets |= {given[key] for key in ("href", "src") if given.get(key)}


def broken(folder):
    """Links that lead nowhere, as (page, link)."""
    root = Path(folder).resolve()
    pages = {
        path: Links(path.read_text(encoding="utf-8"))
        for path in sorted(root.rglob("*.html"))
        if "_static" not in path.parts
    }
    for path, page in pages.items():
        for link in sorted(page.targets):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            place = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages.get(place)
            if not place.exists() or (known and unquote(parts.fragment) not in known.anchors):
                yield path.relative_to(root), link


if __name__ == "__main__":
    found = list(broken(sys.argv[1]))
    for page, link in found:
        print(f"{page}: {link}")
    print(f"{len(found)} broken links in {sys.argv[1]}")
    sys.exit(bool(found))
