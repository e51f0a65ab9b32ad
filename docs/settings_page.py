"""The page of all settings, from the comments where they are declared."""

import dataclasses
import inspect
import io
import re
import tokenize
import typing

from luong_keras.config import RunConfig
from luong_keras.presets import PRESETS


def _comments(config):
    """{field: its comment}, from the lines above it or from its own lines."""
    source = inspect.getsource(config)
    comments, above, name = {}, [], None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            text = token.string.lstrip("# ")
            if token.line.lstrip().startswith("#"):
                above.append(text)
            else:
                comments[name].append(text)
        elif token.type == tokenize.NAME and re.match(
            rf"    {token.string}: ", token.line
        ):
            name = token.string
            comments[name], above = above, []
        elif token.type == tokenize.NEWLINE:
            above = []
    return {name: " ".join(lines) for name, lines in comments.items()}


def _settings(config, group=""):
    """(group, name, value, type, comment) of every setting."""
    comments = _comments(type(config))
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            yield from _settings(value, f"{group}{field.name}.")
        else:
            comment = comments.get(field.name, "")
            yield group, field.name, value, field.type, comment


def _code(value):
    return f"`{value}`".replace("|", "\\|")


def _description(kind, comment):
    choices = [
        choice
        for part in (kind, *typing.get_args(kind))
        if typing.get_origin(part) is typing.Literal
        for choice in typing.get_args(part)
    ]
    values = ", ".join(map(_code, choices))
    comment = re.sub(r"<(?=[^`]*(`[^`]*`[^`]*)*$)", "&lt;", comment)
    return "; ".join(filter(None, [values, comment]))


def text():
    """The page, Markdown."""
    presets = {
        name: {
            (group, setting): value
            for group, setting, value, *_ in _settings(preset)
        }
        for name, preset in PRESETS.items()
    }
    page = (
        "# Settings\n\n"
        "Every setting of a run, with its default and what a preset has "
        "instead. `luong-keras train` takes them by `--set group.name=value` "
        "and from a file (`--config`), `Translator.fit` by their names.\n"
    )
    groups = {}
    for row in _settings(RunConfig()):
        groups.setdefault(row[0], []).append(row)
    for group, rows in groups.items():
        page += f"\n## {group.rstrip('.') or 'run'}\n\n"
        page += "| setting | default | values and meaning | presets |\n"
        page += "|---|---|---|---|\n"
        for _, name, default, kind, comment in rows:
            changed = ", ".join(
                f"{preset}: {_code(values[group, name])}"
                for preset, values in presets.items()
                if values[group, name] != default
            )
            description = _description(kind, comment)
            page += (
                f"| `{name}` | {_code(default)} | {description} | {changed} |\n"
            )
    return page
