"""Runs that were begun with settings which a plan no longer has."""

from __future__ import annotations

import itertools
from pathlib import Path

from luong_keras.config import RunConfig
from luong_keras.recipe.resumption import check_resumable, decide_precision
from luong_keras.training.run_folder import RunFolder


def set_aside(folder: Path, config: RunConfig) -> str | None:
    """Gives the folder of a run that cannot go on another name.

    Args:
        folder: of the run; there may be none.
        config: what the run would go on with.

    Returns:
        What to say of it: why, and the new name; None where it can go on.
    """
    run = RunFolder(folder)
    try:
        check_resumable(decide_precision(config, run), run)
    except ValueError as error:
        aside = _unused(folder)
        folder.rename(aside)
        return f"{error} It begins anew; what there was is now {aside}."
    return None


def _unused(folder: Path) -> Path:
    names = (f"{folder.name}.before-{n}" for n in itertools.count(1))
    paths = (folder.with_name(name) for name in names)
    return next(path for path in paths if not path.exists())
