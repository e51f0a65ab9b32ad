"""BLEU in the tokenization of the target language or script."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from luong_keras.config.checks import check_choice
from luong_keras.evaluation.translation_scores import References
from luong_keras.missing_package import needs

if TYPE_CHECKING:
    from luong_keras.config import DataConfig

# By the first part of the language code; all other languages use 13a.
_TOKENIZERS = {
    **dict.fromkeys(("zh", "zho", "chi", "cmn", "yue", "lzh"), "zh"),
    **dict.fromkeys(("ja", "jpn"), "ja-mecab"),
    **dict.fromkeys(("ko", "kor"), "ko-mecab"),
}
# Languages without spaces for which sacreBLEU has no tokenizer.
_WITHOUT_SPACES = (
    *("th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bur"),
    *("bo", "bod", "tib"),
)
_SUBWORDS = "flores200"
_EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}
# Scripts, by their names in Unicode, that identify a language, or that have no
# spaces between words; `language_of_script` adds Chinese and Japanese.
_LANGUAGES = {
    "Hangul": "ko",
    "Thai": "th",
    "Lao": "lo",
    "Khmer": "km",
    "Myanmar": "my",
    "Tibetan": "bo",
}
# Low, because some Chinese text has many names and terms in Latin letters.
_SHARE = 0.3
_SHARE_OF_KANA = 0.1


class Target(NamedTuple):
    """Properties of the target text that determine a metric.

    Attributes:
        language: Code of the target language, or None if it is unknown.
        lowercase: Whether the run ignores case.
        variant: The part of the setting after the colon, `zh` in `bleu:zh`.
        references: Reference translations; their script decides if the
            language does not.
        pretokenized: Whether the text is already tokenised.
    """

    language: str | None = None
    lowercase: bool = False
    variant: str | None = None
    references: Sequence[str] = ()
    pretokenized: bool = False


def target_of(data: DataConfig, references: References) -> Target:
    """Return the target text that settings and references describe.

    Args:
        data: The data settings of a run.
        references: One reference per sentence, or a list of several.
    """
    return Target(
        data.target_language,
        data.lowercase,
        references=[r if isinstance(r, str) else r[0] for r in references],
        pretokenized=data.pretokenized,
    )


def tokenizer_of(target: Target) -> tuple[str, str]:
    """Choose a tokenizer of sacreBLEU, with the reason.

    Args:
        target: The target text. Its language decides; if the language is
            unknown or has no special tokenizer, the script of the references
            decides. Tokenised text needs no tokenizer.

    Returns:
        The name of a tokenizer that works here, and the reason in words.
    """
    if target.pretokenized:
        return "none", "the text is tokenised already"
    code = (target.language or "").replace("_", "-").split("-")[0].lower()
    reason = f"the target language is {target.language}"
    if code not in (*_TOKENIZERS, *_WITHOUT_SPACES):
        by_script = language_of_script(target.references)
        if by_script is None and not code:
            reason = "the target text has spaces between words"
        elif by_script is not None:
            code, reason = by_script, f"the target text looks like {by_script}"
    if code in _WITHOUT_SPACES:
        is_downloaded = os.path.exists(_model_path(_SUBWORDS))
        return (_SUBWORDS if is_downloaded else "char"), reason
    name = _TOKENIZERS.get(code, "13a")
    try:
        tokenizer(name)
    except ImportError as error:
        return "char", f"{reason}, but {error}"
    return name, reason


def tokenizer(name: str) -> Callable[[str], str]:
    """Create a tokenizer of sacreBLEU.

    Args:
        name: Its name in sacreBLEU, such as `"13a"` or `"zh"`.

    Returns:
        A function from a line to its tokens, separated by spaces.

    Raises:
        ValueError: If sacreBLEU has no tokenizer of this name.
        ImportError: If the package of the tokenizer is missing.
        FileNotFoundError: If the model of the tokenizer is missing.
    """
    with needs("sacrebleu"):
        from sacrebleu.metrics.bleu import BLEU
    check_choice(
        sorted(BLEU.TOKENIZERS),
        " BLEU's variant is a tokenizer of sacreBLEU.",
        variant=name,
    )
    path = _model_path(name)
    if path and not os.path.exists(path):
        raise FileNotFoundError(
            f"The tokenizer {name} needs its model. Expected: {path}. "
            "Received: no such file. sacreBLEU downloads it the first time "
            f"that it scores with --tokenize {name}."
        )
    try:
        return BLEU(tokenize=name, force=True).tokenizer
    except (ImportError, RuntimeError) as error:
        extra = _EXTRAS.get(name)
        raise ImportError(
            f"the tokenizer {name} cannot be made "
            f"({str(error).strip().splitlines()[0]})"
            + (f"; pip install 'sacrebleu[{extra}]'" if extra else "")
        ) from error


def token_counts(name: str, lines: Sequence[str]) -> list[int]:
    """Count the tokens of each line.

    Args:
        name: Name of the tokenizer in sacreBLEU.
        lines: The text.

    Example:
        >>> token_counts("13a", ["Ein Hund.", ""]), token_counts("zh", ["我们"])
        ([3, 0], [2])
    """
    split = tokenizer(name)
    return [len(split(line).split()) for line in lines]


def _model_path(name: str) -> str:
    """Return the path of the model of a tokenizer, or "" if it needs none."""
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    if name not in SPM_MODELS:
        return ""
    file = os.path.basename(SPM_MODELS[name]["url"])
    return os.path.join(SACREBLEU_DIR, "models", file)


def language_of_script(lines: Iterable[str]) -> str | None:
    """Detect the language of a text by its script.

    Args:
        lines: The text.

    Returns:
        `"zh"`, `"ja"`, `"ko"`, `"th"`, `"lo"`, `"km"`, `"my"` or `"bo"`; None
        for other scripts, which separate words by spaces.

    Example:
        >>> language_of_script(["我们买 iPhone。"])
        'zh'
        >>> language_of_script(["東京に行く"]), language_of_script(["I am"])
        ('ja', None)
    """
    text = "".join(lines)
    if text.isascii():
        return None
    with needs("regex"):
        import regex

    letters = "".join(regex.findall(r"[\p{L}\p{M}]", text))

    def count(*scripts: str) -> int:
        classes = "".join(rf"\p{{Script={script}}}" for script in scripts)
        return len(regex.findall(f"[{classes}]", letters))

    threshold = _SHARE * len(letters)
    han, kana = count("Han"), count("Hiragana", "Katakana")
    if han + kana > threshold:
        return "ja" if kana > _SHARE_OF_KANA * (han + kana) else "zh"
    counts = {script: count(script) for script in _LANGUAGES}
    script = max(counts, key=counts.__getitem__)
    return _LANGUAGES[script] if counts[script] > threshold else None
