"""Every file of the library as a page with colours, which the API and the page on the paper link to."""

import ast
import csv
import re
from html import escape
from pathlib import Path

import pygments
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

import skpursuit

PACKAGE = Path(skpursuit.__file__).parent
DOCS = Path(__file__).parents[1]
CELL = re.compile(r"`([\w/]+\.py)`")
LINKED = re.compile(r"\[(`[\w/]+\.py`)\]\(\.\./src/[^)]+\)")  # as readers of the repository need it


def lines_of(file):
    """The line of every class, function and named value of a file."""
    tree, found = ast.parse((PACKAGE / file).read_text(encoding="utf-8")), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.setdefault(node.name, node.lineno)
        elif isinstance(node, ast.AnnAssign):
            found.setdefault(ast.unparse(node.target), node.lineno)
    return found


def linkcode_resolve(domain, info):
    """Where the API reference links `[source]` to; its pages stand two folders deep."""
    thing = skpursuit
    for part in [*info["module"].split(".")[1:], *info["fullname"].split(".")]:
        thing = getattr(thing, part, None)
    code = getattr(getattr(thing, "fget", thing), "__code__", None)
    module = getattr(thing, "__module__", "") or ""
    if not module.startswith("skpursuit"):
        return None
    file = module.replace(".", "/").removeprefix("skpursuit/") + ".py"
    if not (PACKAGE / file).exists():
        file = file.removesuffix(".py") + "/__init__.py"
    inside = code is not None and code.co_filename.endswith(file)
    line = code.co_firstlineno if inside else lines_of(file).get(info["fullname"].split(".")[-1], 1)
    return f"../../source/{file.removesuffix('.py')}.html#L{line}"


def link_names(app, name, source):
    """On the page about the paper, turn files and names of code into links to their lines."""
    if name != "paper":
        return
    out = []
    for line in LINKED.sub(r"\1", source[0]).splitlines():
        files = CELL.findall(line) if line.startswith("| ") else []
        files = [file for file in files if (PACKAGE / file).exists()]
        where = {key: (file, number) for file in files for key, number in lines_of(file).items()}
        for file in files:
            line = line.replace(f"`{file}`", f"<a href='source/{file[:-3]}.html'><code>{file}</code></a>")
        for key in set(re.findall(r"`(\w+)`", line)) & set(where):
            file, number = where[key]
            link = f"<a href='source/{file[:-3]}.html#L{number}'><code>{key}</code></a>"
            line = line.replace(f"`{key}`", link)
        out.append(line)
    source[0] = "\n".join(out)


def claims(app, name, source):
    """Put the table of the claims where a page says so."""
    if "<!-- claims.csv -->" not in source[0]:
        return
    with open(DOCS / "results" / "claims.csv", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    cells = [
        "<table class='table claims'><thead><tr><th>Claim</th><th>Where</th><th>Measured</th>"
        "<th>Verdict</th></tr></thead><tbody>"
    ]
    for row in rows:
        measured = "<br>".join(
            f"{label}{escape(row[key])}"
            for label, key in (("", "measured"), ("at 30 dB: ", "measured_30db"), ("", "why"))
            if row.get(key)
        )
        paper = f"<br><small>the paper: {escape(row['paper'])}</small>" if row["paper"] else ""
        kind = row["verdict"].split()[0]
        cells.append(
            f"<tr><td>{escape(row['claim'])}{paper}</td><td>{escape(row['where'])}</td><td>{measured}</td>"
            f"<td><span class='verdict {kind}'>{escape(row['verdict'])}</span></td></tr>"
        )
    source[0] = source[0].replace("<!-- claims.csv -->", "\n".join([*cells, "</tbody></table>"]))


def whole_files(app, name, source):
    """Show a file of the repository's root as a page; its links start there."""
    found = re.search(r"<!-- file: (\S+) -->", source[0])
    if found:
        text = (DOCS.parent / found[1]).read_text(encoding="utf-8").replace("](docs/", "](")
        source[0] = re.sub(r"\]\((CHANGELOG|CONTRIBUTING)\.md", lambda m: f"]({m[1].lower()}.md", text)


def pages(app):
    """A page for every file of the library."""
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        style = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True)
        code = pygments.highlight(path.read_text(encoding="utf-8"), PythonLexer(), style)
        code = re.sub(r'(id|name)="L-(\d+)"', r'\1="L\2"', code).replace('href="#L-', 'href="#L')
        body = f"<h1><code>skpursuit/{file}</code></h1><div class='highlight-python'>{code}</div>"
        yield f"source/{file[:-3]}", {"title": f"skpursuit/{file}", "body": body}, "page.html"


def setup(app):
    app.connect("source-read", link_names)
    app.connect("source-read", claims)
    app.connect("source-read", whole_files)
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
