"""The templates of pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luong_keras.missing_package import missing_package

if TYPE_CHECKING:
    import jinja2


def environment(*packages: str) -> jinja2.Environment:
    """What fills the templates of this package, and of others in front.

    Args:
        packages: that have a folder `templates`.

    Raises:
        ImportError: where Jinja2 is not installed.
    """
    try:
        import jinja2
    except ImportError as error:
        raise missing_package("jinja2", error) from error
    loaders = [
        jinja2.PackageLoader(package)
        for package in (*packages, "luong_keras.report")
    ]
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
