"""Public data: test sets of sacreBLEU and sets of TensorFlow Datasets."""

import difflib
from collections.abc import Iterator
from typing import Any

from luong_keras.data.sources.columns import RequestedColumns
from luong_keras.data.sources.python_objects import read_tensorflow
from luong_keras.files.text_lines import read_lines
from luong_keras.missing_package import needs


def test_set(
    name: str, source_language: str, target_language: str
) -> tuple[list[str], list[str]]:
    """Load a test set of sacreBLEU; the first use downloads it.

    Args:
        name: SacreBLEU's name, such as `"wmt13"`, `"wmt14/full"` or `"wmt15"`.
        source_language: The code of the language to translate from.
        target_language: The code of the language to translate to. If a set
            has only the other direction, its sides are exchanged.

    Returns:
        The source sentences and the reference translations.

    Raises:
        ValueError: If the set does not exist, or lacks these languages.
        ConnectionError: If the set is not on this machine and cannot be
            downloaded.
    """
    with needs("sacrebleu"):
        import sacrebleu
    names = sacrebleu.get_available_testsets()
    if name not in names:
        suggestions = difflib.get_close_matches(name, names, n=4, cutoff=0.3)
        raise ValueError(
            f"sacreBLEU has no test set of this name. Received: {name!r}. "
            f"Near names: {suggestions}."
        )
    direction = f"{source_language}-{target_language}"
    reverse = f"{target_language}-{source_language}"
    pairs = sacrebleu.get_langpairs_for_testset(name)
    if direction not in pairs and reverse not in pairs:
        raise ValueError(
            f"The test set {name!r} has the language pairs {sorted(pairs)}. "
            f"Received: {direction!r}. Choose one of them, or its reverse."
        )
    pair = direction if direction in pairs else reverse
    try:
        source = sacrebleu.get_source_file(name, pair)
        reference = sacrebleu.get_reference_files(name, pair)[0]
    # sacreBLEU calls `sys.exit` on some failures of a download.
    except (OSError, SystemExit) as error:
        raise ConnectionError(
            f"The test set {name!r} ({pair}) could not be downloaded: "
            f"{error!r}. The first use of a test set needs the network; or "
            "copy the folder `~/.sacrebleu` from a machine that has it."
        ) from error
    sides = list(read_lines(source)), list(read_lines(reference))
    if len(sides[0]) != len(sides[1]):
        raise ValueError(
            f"The test set {name!r} is damaged: {len(sides[0])} source and "
            f"{len(sides[1])} reference lines. Remove its folder below "
            "`~/.sacrebleu`."
        )
    return sides if pair == direction else sides[::-1]


# pytest must not collect the function as a test.
test_set.__test__ = False  # type: ignore[attr-defined]


def tfds_pairs(
    name: str,
    split: str,
    source_language: str,
    target_language: str,
) -> Iterator[tuple[str, str]]:
    """Read sentence pairs of a TensorFlow dataset.

    The first use downloads and prepares the set. A set from German to English
    also serves English to German.

    Args:
        name: A set with a translation feature, such as `"wmt14_translate"`,
            or one of its configurations, such as `"wmt14_translate/de-en"`.
        split: The split, such as `"train"`, `"validation"` or `"train[:1%]"`.
        source_language: The code of the language to translate from.
        target_language: The code of the language to translate to.

    Returns:
        Pairs of source and target sentence, in the order of the files.

    Raises:
        ValueError: If the set or the split does not exist, or the set lacks
            these languages; raised by the call.
    """
    builder = _find_builder(name, source_language, target_language)
    import tensorflow_datasets as tfds

    builder.download_and_prepare()
    try:
        dataset = builder.as_dataset(
            split=split,
            shuffle_files=False,
            # Files are read one after the other, always in the same order.
            read_config=tfds.ReadConfig(interleave_cycle_length=1),
        )
    except ValueError as error:
        raise ValueError(
            f"The set {name!r} has no split {split!r}; it has "
            f"{sorted(builder.info.splits)}."
        ) from error
    requested = RequestedColumns(columns=(source_language, target_language))
    pairs, _ = read_tensorflow(dataset, requested)
    return ((source.decode(), target.decode()) for source, target in pairs)


def _find_builder(
    name: str,
    source_language: str,
    target_language: str,
) -> Any:
    """Find the builder of the configuration with both languages."""
    with needs("tensorflow-datasets"):
        import tensorflow_datasets as tfds
    base, _, config = name.partition("/")
    if ":" in base:
        raise ValueError(
            "Expected: the name of a set of TensorFlow Datasets, without a "
            f"namespace or version. Received: {base!r}. Sets of a namespace "
            "are code of others, which would be downloaded and run. Load the "
            "set yourself, and train on its pairs."
        )
    try:
        configs = tfds.builder_cls(base).builder_configs
    except tfds.core.DatasetNotFoundError as error:
        raise ValueError(
            "TensorFlow Datasets has no set of this name. Received: "
            f"{base!r}. Translation sets are, among others, "
            "'wmt14_translate' and 'wmt15_translate'."
        ) from error
    if config and config not in configs:
        raise ValueError(
            f"The set {base!r} has the configurations {sorted(configs)}. "
            f"Received: {config!r}."
        )
    requested = {source_language, target_language}
    available: dict[str, list[str]] = {}
    for candidate in [config] if config or not configs else configs:
        full_name = f"{base}/{candidate}".removesuffix("/")
        pair: Any = getattr(configs.get(candidate), "language_pair", None)
        if pair is None or requested == set(pair):
            builder = tfds.builder(full_name)
            pair = getattr(builder.info.features, "languages", ())
            if requested <= set(pair):
                return builder
        available[full_name] = sorted(pair)
    if not any(available.values()):
        raise ValueError(
            f"The set {name!r} has no translation feature; expected one such "
            "as 'wmt14_translate'."
        )
    listing = ", ".join(
        f"{full_name} ({' and '.join(languages)})"
        for full_name, languages in available.items()
        if languages
    )
    raise ValueError(
        f"The set {name!r} does not have both {source_language!r} and "
        f"{target_language!r}. It has, in either direction: {listing}."
    )
