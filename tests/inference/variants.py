"""Variants of a translator, and comparisons of n-best lists."""

import numpy as np

from luong_keras.translator import Translator


def variant_of(translator, models=None, parts=None, **settings):
    """Return a translator with other models, parts or settings of a search.

    `parts` has names and values of arguments of `Translator`. Preprocessors,
    strategy and scorers of the given translator are left out.
    """
    return Translator(
        models or translator.translation_model,
        translator.source_tokenizer,
        translator.target_tokenizer,
        translator.decoding.with_(**settings),
        **parts or {},
    )


def check_same(found, expected, rtol=1e-4):
    """Check that lists of n-best lists are equal up to rounding."""
    for one, other in zip(found, expected, strict=True):
        assert [t.text for t in one] == [t.text for t in other]
        assert [t.tokens for t in one] == [t.tokens for t in other]
        for first, second in zip(one, other, strict=True):
            np.testing.assert_allclose(first.score, second.score, rtol=rtol)
            np.testing.assert_allclose(
                first.alignments, second.alignments, atol=1e-5
            )


def tokens_of(found):
    """List the tokens of the translations of each sentence."""
    return [[t.tokens for t in nbest] for nbest in found]


def all_tokens(found):
    """Return the set of tokens of all n-best lists."""
    return {token for nbest in found for t in nbest for token in t.tokens}
