"""Errors for packages and private names that are missing."""

import contextlib
import importlib.metadata
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

# The versions that have been found to have the private names.
KNOWN = {
    "keras": "3.10 to 3.15",
    "sacrebleu": "2.4 to 2.6",
    "tensorflow": "2.18 to 2.21",
    "tensorflow_text": "2.18 to 2.21",
}


def missing_package(
    name: str, error: Exception, extra: str = "train"
) -> ImportError:
    """Build the error that tells how to install an optional package.

    Args:
        name: The package that could not be imported.
        error: The error of the failed import; its text is repeated, because
            an installed package may also fail to load.
        extra: The extra of this project that installs the package.

    Returns:
        The error to raise.

    Example:
        >>> print(missing_package("sentencepiece", ImportError("not found")))
        This needs the package `sentencepiece`, which could not be imported \
(not found). Install it with `pip install '.[train]'` in a clone, or \
`pip install 'luong-keras[train]'`.
    """
    command = (
        f"pip install '.[{extra}]'` in a clone, or `pip install "
        f"'luong-keras[{extra}]'"
    )
    if name == "tensorflow-text":
        # It must match the minor version of TensorFlow.
        minor = _installed_version("tensorflow", "2").split(".")[:2]
        command = f"pip install '{name}=={'.'.join(minor)}.*'"
    return ImportError(
        f"This needs the package `{name}`, which could not be imported "
        f"({str(error).strip()}). Install it with `{command}`.",
        name=name,
    )


@contextlib.contextmanager
def needs(name: str, extra: str = "train") -> Iterator[None]:
    """Tell how to install an optional package if its import fails.

    Args:
        name: The package that is imported.
        extra: The extra of this project that installs the package.

    Raises:
        ImportError: As `missing_package` builds it.

    Example:
        >>> with needs("xyz"):
        ...     import xyz
        Traceback (most recent call last):
          ...
        ImportError: This needs the package `xyz`, which could not be \
imported (No module named 'xyz'). Install it with `pip install \
'.[train]'` in a clone, or `pip install 'luong-keras[train]'`.
    """
    try:
        yield
    except ImportError as error:
        raise missing_package(name, error, extra) from error


def private_name(path: str, owner: Any = None, instead: str = "") -> Any:
    """Get a name that its package does not promise to keep.

    Args:
        path: The name, as `docs/private_apis.md` lists it.
        owner: The object that has it; the module or class in the path if None.
        instead: A sentence on an alternative without the name.

    Raises:
        ImportError: One line, if the installed version lacks the name.

    Example:
        >>> private_name("keras.src.backend")  # doctest: +ELLIPSIS
        <module 'keras.src.backend' ...>
    """
    try:
        if owner is None:
            return pkgutil.resolve_name(path)
        return getattr(owner, path.rpartition(".")[2])
    except (ImportError, AttributeError) as error:
        if isinstance(error, ImportError) and error.name in KNOWN:
            # The package itself is missing.
            raise missing_package(error.name, error) from error
        package = re.split("[./]", path)[0]
        message = (
            f"This needs `{path}`, a private name that {package} "
            f"{_installed_version(package, 'of this installation')} does not "
            f"have. Install {package} {KNOWN[package]}. {instead}"
        )
        raise ImportError(message.strip(), name=package) from error


def _installed_version(package: str, default: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # tensorflow-cpu
        return default
