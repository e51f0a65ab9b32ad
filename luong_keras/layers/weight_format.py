"""The format number that layers write beside their weights."""

FORMAT = 2


def note_format(store):
    """Write the format number into a layer's part of a weights file.

    Args:
        store: what `save_own_variables` receives.
    """
    store["format"] = FORMAT


def check_format(layer, store):
    """Raise unless a layer's part of a weights file has this format number.

    Args:
        layer: the layer that reads the file.
        store: what `load_own_variables` receives.

    Raises:
        ValueError: if the number is missing or another one.
    """
    found = int(store["format"][()]) if "format" in set(store.keys()) else 1
    if found != FORMAT:
        raise ValueError(
            f"`{type(layer).__name__}` {layer.name!r} reads weights of format "
            f"{FORMAT}. Received: a file of format {found}, of another "
            "version of luong_keras. Save the weights again with this one, or "
            "read the file with the version that wrote it."
        )
