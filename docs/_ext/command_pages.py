"""A page of the ``refkernel`` command: every command with its arguments and options, as ``--help`` shows them."""

from __future__ import annotations

from pathlib import Path

import typer.main

from refkernel.cli import app as command_line

INTRODUCTION = """Commands
========

Every command of the shell, as ``refkernel COMMAND --help`` shows it. Install them with ``pip install ".[cli]"`` in a clone.

"""


def write_page(app):
    """Write the source of the page, before Sphinx looks for sources."""
    group = typer.main.get_command(command_line)
    text = INTRODUCTION + "".join(_commands("refkernel", group))
    path = Path(app.srcdir) / "api" / "commands.rst"
    path.parent.mkdir(exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _commands(before: str, group):
    """The sections of a group's commands, each followed by those of its own commands."""
    for name, command in group.commands.items():
        yield _command(f"{before} {name}", command)
        if hasattr(command, "commands"):
            yield from _commands(f"{before} {name}", command)


def _command(title: str, command) -> str:
    shown = [parameter for parameter in command.params if parameter.name != "help" and not getattr(parameter, "hidden", False)]
    arguments = " ".join(parameter.name.upper() for parameter in shown if parameter.param_type_name == "argument")
    rows = "".join(_row(parameter) for parameter in shown)
    table = f".. list-table::\n   :widths: 34 66\n\n{rows}\n" if rows else ""
    return f"{title}\n{'-' * len(title)}\n\n{command.help}\n\n::\n\n   {title} [OPTIONS] {arguments}\n\n{table}\n"


def _row(parameter) -> str:
    is_option = parameter.param_type_name == "option"
    names = [*parameter.opts, *parameter.secondary_opts] if is_option else [parameter.name.upper()]
    default = parameter.default if not callable(parameter.default) else None
    shown = f" Default: ``{default}``." if is_option and default not in (None, "", False, True) else ""
    needed = " Required." if is_option and parameter.required else ""
    return f"   * - {', '.join(f'``{name}``' for name in names)}\n     - {' '.join((parameter.help or '').split())}{needed}{shown}\n"


def setup(app):
    app.connect("builder-inited", write_page, priority=410)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
