"""``skpursuit info`` and ``skpursuit completion``."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import get_completion_class

from skpursuit import __version__
from skpursuit.cli.base import Command, Output, output_options

EXTRAS = {
    **dict.fromkeys(("click", "rich", "jinja2", "matplotlib", "pyarrow", "python-calamine"), "cli"),
    "soundfile": "audio",
}


@click.command(
    cls=Command,
    epilog="""
    skpursuit info
    skpursuit info --json
    """,
)
@output_options
def info(out: Output) -> None:
    """Show versions, machine, optional packages and selectors: what a bug report needs."""
    from skpursuit.experiments.machine import installed, machine
    from skpursuit.selectors import NAMES

    extras = {
        name: installed(name) or f"missing, pip install 'skpursuit[{extra}]'"
        for name, extra in EXTRAS.items()
    }
    facts: dict[str, Any] = {**machine(), **extras, "selectors": ", ".join(NAMES)}
    facts["skpursuit"] = __version__
    for name, value in facts.items():
        out.say(f"{name:<16}{value}")
    out.result(facts)


@click.command(
    cls=Command,
    epilog="""
    skpursuit completion bash >> ~/.bashrc
    skpursuit completion zsh >> ~/.zshrc
    skpursuit completion fish > ~/.config/fish/completions/skpursuit.fish
    """,
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands and options."""
    kind = get_completion_class(shell)
    assert kind is not None
    command = ctx.find_root().command
    click.echo(kind(command, {}, "skpursuit", "_SKPURSUIT_COMPLETE").source())
