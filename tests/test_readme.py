"""The README's examples run and print what they say."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.S)


def test_examples_print_what_they_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(README.read_text())
    names: dict = {}
    checked = 0
    for (kind, code), (after, expected) in zip(blocks, [*blocks[1:], ("end", "")]):
        if kind != "python":
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, str(README), "exec"), names)
        if after == "":
            assert out.getvalue() == expected
            checked += 1
    assert checked >= 3


@pytest.mark.parametrize("name", ["demo", "test"])
def test_the_two_commands_exist(name):
    assert f"make {name}" in README.read_text()
    assert re.search(rf"^{name}:", (README.parent / "Makefile").read_text(), re.M)
