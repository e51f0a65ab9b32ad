"""The page of all settings, from the comments where they are declared."""

import dataclasses
import inspect
import io
import re
import tokenize

from luong_keras.config import RunConfig
from luong_keras.config.checks import choices_of
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
    values = ", ".join(map(_code, choices_of(kind)))
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
        "Every setting of a run with its default, and what the "
        "[presets](#presets) have instead. `luong-keras train` takes them by "
        "`--set group.name=value` and from a file (`--config`), "
        "`Translator.fit` by their names.\n"
    )
    groups = {}
    for group, *setting in _settings(RunConfig()):
        groups.setdefault(group, []).append(setting)
    for group, settings in groups.items():
        page += f"\n## {group.rstrip('.') or 'run'}\n\n"
        page += "| setting | default | values and meaning |\n|---|---|---|\n"
        for name, default, kind, comment in settings:
            description = _description(kind, comment)
            page += f"| `{name}` | {_code(default)} | {description} |\n"
    page += "\n## Presets\n\n"
    page += f"| setting | default | {' | '.join(presets)} |\n"
    page += "|---" * (len(presets) + 2) + "|\n"
    for group, settings in groups.items():
        for name, default, *_ in settings:
            values = [preset[group, name] for preset in presets.values()]
            if any(value != default for value in values):
                shown = [
                    _code(value) if value != default else "" for value in values
                ]
                page += f"| `{group}{name}` | {_code(default)} |"
                page += f" {' | '.join(shown)} |\n"
    return page
