"""Tensors of the options of a search."""

import tensorflow as tf

from luong_keras.inference.search_options import SEARCH_OPTIONS, option_column


def option_tensors(count, **given):
    """Return the options of `count` sentences, with one or `count` values.

    Options that are not given are unset.
    """
    return {
        name: tf.constant(
            option_column(name, given.get(name), count), option.kind
        )
        for name, option in SEARCH_OPTIONS.items()
    }
