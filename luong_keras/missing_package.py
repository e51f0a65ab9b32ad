"""The error for an optional package that is not installed."""

import importlib.metadata


def missing_package(
    name: str, error: ImportError, extra: str = "train"
) -> ImportError:
    """Builds the error that tells how to install an optional package.

    Args:
        name: The package that could not be imported.
        error: The error of the failed import; its text is repeated, since a
            package may be there and still fail to load.
        extra: The extra of this project that brings the package.

    Returns:
        The error to raise.

    Example:
        >>> print(missing_package("sentencepiece", ImportError("not found")))
        This needs the package `sentencepiece`, which could not be imported \
(not found). Install it with `pip install luong-keras[train]`.
    """
    line = f"pip install luong-keras[{extra}]"
    if name == "tensorflow-text":
        line = f"pip install '{name}=={_version_of_tensorflow()}'"
    return ImportError(
        f"This needs the package `{name}`, which could not be imported "
        f"({error}). Install it with `{line}`.",
        name=name,
    )


def _version_of_tensorflow() -> str:
    """The minor version that is installed, which tensorflow-text must have."""
    try:
        version = importlib.metadata.version("tensorflow")
    except importlib.metadata.PackageNotFoundError:
        return "2.*"
    return ".".join([*version.split(".")[:2], "*"])
