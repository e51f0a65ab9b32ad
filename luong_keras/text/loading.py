"""Loading of saved tokenizers of either kind."""

import json
from pathlib import Path

from luong_keras.files.path_checks import safe_join
from luong_keras.text.sentencepiece_tokenizer import SentencePieceTokenizer
from luong_keras.text.tokenizer import Tokenizer
from luong_keras.text.word_tokenizer import WordTokenizer

_KINDS: dict[str, type[WordTokenizer] | type[SentencePieceTokenizer]] = {
    kind.kind: kind for kind in (WordTokenizer, SentencePieceTokenizer)
}


def load_tokenizer(folder: str | Path, name: str) -> Tokenizer:
    """Read a tokenizer that `Tokenizer.save` wrote.

    Args:
        folder: The folder given to `save`.
        name: The name given to `save`.

    Returns:
        A `WordTokenizer` or a `SentencePieceTokenizer`.

    Raises:
        FileNotFoundError: If one of the two files is missing.
        ValueError: If a file is damaged, has changed since it was saved, or is
            a link out of the folder.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> WordTokenizer.train(["a b a"], 6).save(folder, "source")
        >>> load_tokenizer(folder, "source").encode(["b a"]).to_list()
        [[5, 4]]
    """
    path = safe_join(folder, f"{name}.json")
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no tokenizer at {path}. Expected a folder and a name "
            "that were given to `Tokenizer.save`."
        )
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        tokenizer_class = _KINDS[description["kind"]]
        options = dict(description["options"])
        fingerprint = description["fingerprint"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} does not describe a tokenizer of the kinds "
            f"{sorted(_KINDS)}. Received: {error!r}. Save the tokenizer again."
        ) from error
    file = safe_join(folder, f"{name}{tokenizer_class.file_suffix}")
    tokenizer = tokenizer_class(file, **options)
    if tokenizer.fingerprint != fingerprint:
        raise ValueError(
            f"{file} or the options in {path} changed after the tokenizer was "
            f"saved: expected fingerprint {fingerprint}. Received: "
            f"{tokenizer.fingerprint}. Restore the files; to use an edited "
            f"vocabulary, make a new `{tokenizer_class.__name__}` of it and "
            "train a new model."
        )
    return tokenizer
