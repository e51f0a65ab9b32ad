"""Weights in the layout of the program of the paper's authors.

The matrices of the program are [out, in], applied as y = W x:

    W_src{l}, W_tgt{l}   [4U, in + U]: input first, recurrence last; the input
                         of the lowest decoder layer is
                         [embedding; h̃_{t-1}]. Gates: input, forget, output,
                         candidate
    W_emb_src, W_emb_tgt [V, E]: one row per word
    W_a                  general: h̄ . (W_a h); concat: [U, U], of h only;
                         location (until September 2015): W_loc [K, U]
    v_a                  [U], of concat
    W_pos, v_pos         [U, U], [U] (eq. 9)
    W_h                  [U, 2U], of [context; h] (eq. 5)
    W_soft               [V, U] (eq. 6)
"""

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from luong_keras.models.translation_model import TranslationModel


class _ArrayConversion:
    """An array of the program, with functions from and to our variables."""

    def __init__(self, variables, split, join):
        self.variables, self.split, self.join = variables, split, join


def load_authors_weights(
    translation_model: TranslationModel, arrays: Mapping[str, np.ndarray]
) -> None:
    """Load the weights of the authors' program into a model.

    Args:
        translation_model: A model whose config selects the equations of the
            program, such as the config of the preset `authors`.
        arrays: Weights under the names of the program, which the docstring of
            this module lists.

    Raises:
        ValueError: If arrays are missing, left over or of another shape. No
            weight is assigned then.

    Example:
    >>> from luong_keras import PRESETS, TranslationModel, override
    >>> config = override(PRESETS["authors"], [
    ...     "model.units=4", "model.embedding_size=4",
    ...     "model.encoder_layers=1", "model.decoder_layers=1",
    ...     "model.source_vocabulary_size=9", "model.target_vocabulary_size=9",
    ... ]).model
    >>> model, copy = TranslationModel(config), TranslationModel(config)
    >>> load_authors_weights(copy, authors_weights(model))
    >>> sorted(authors_weights(copy))[:4]
    ['W_a', 'W_emb_src', 'W_emb_tgt', 'W_h']
    """
    conversions = _array_conversions(translation_model)
    if set(arrays) != set(conversions):
        raise ValueError(
            "The arrays must be those of the model. Missing: "
            f"{sorted(set(conversions) - set(arrays))}. Left over: "
            f"{sorted(set(arrays) - set(conversions))}. Check the attention, "
            "the layers and `use_bias=False` of the model's config."
        )
    assignments: list[tuple[Any, Any]] = []
    for name, conversion in conversions.items():
        array = np.asarray(arrays[name])
        expected = conversion.join(
            *(np.zeros(v.shape) for v in conversion.variables)
        ).shape
        if array.shape != expected:
            raise ValueError(
                f"`{name}` does not fit the model. Expected: shape "
                f"{expected}. Received: {array.shape}."
            )
        assignments += zip(
            conversion.variables, conversion.split(array), strict=True
        )
    for variable, value in assignments:
        variable.assign(value)


def authors_weights(
    translation_model: TranslationModel,
    value_of: Callable = keras.ops.convert_to_numpy,
) -> dict[str, np.ndarray]:
    """Return the weights of a model in the layout of the authors' program.

    Args:
        translation_model: As in `load_authors_weights`.
        value_of: Function of a variable that returns an array of its shape;
            its value by default, or for example its gradient.

    Returns:
        Arrays under the names of the program.
    """
    return {
        name: conversion.join(
            *(np.asarray(value_of(v)) for v in conversion.variables)
        )
        for name, conversion in _array_conversions(translation_model).items()
    }


def _array_conversions(model: TranslationModel) -> dict[str, _ArrayConversion]:
    cell = model.decoder.cell
    if model.source_embedding is None:
        raise ValueError(
            "The authors' program embeds the words of the source. Received: "
            "a model with `source_features`. Leave them out."
        )
    if model.source_embedding is model.target_embedding:
        raise ValueError(
            "The authors' program has an embedding for each side. Received: "
            "shared_embeddings=True. Set it to False."
        )
    if model.projection.embedding is not None:
        raise ValueError(
            "The authors' program has an output matrix of its own. Received: "
            "tied_embeddings=True. Set it to False."
        )
    conversions = {
        "W_emb_src": _identity_conversion(model.source_embedding.embeddings),
        "W_emb_tgt": _identity_conversion(model.target_embedding.embeddings),
        "W_soft": _transpose_conversion(model.projection.kernel),
        **_encoder_conversions(model.encoder),
    }
    for layer in range(cell.num_layers):
        kernels = [cell.kernels[layer], cell.recurrent_kernels[layer]]
        if layer == 0 and cell.input_feeding:
            kernels.insert(1, cell.feeding_kernel)
        conversions[f"W_tgt{layer}"] = _gates_conversion(*kernels)
    if cell.attention is not None:
        conversions["W_h"] = _transpose_conversion(cell.attentional_kernel)
        conversions |= _attention_conversions(cell.attention)
    _check_no_other_weights(model, conversions)
    return conversions


def _encoder_conversions(encoder) -> dict[str, _ArrayConversion]:
    conversions = {}
    for height, (layer, *backward) in enumerate(encoder.stacks):
        if backward or encoder.recurrence != "lstm":
            raise ValueError(
                "The authors' encoder is a stack of LSTM layers that read "
                "one way. Received: an encoder with recurrence="
                f"{encoder.recurrence!r}, bidirectional={bool(backward)}."
            )
        cell = layer.cell
        kernels = (
            (cell.kernels[0], cell.recurrent_kernels[0])
            if hasattr(cell, "kernels")
            else (cell.kernel, cell.recurrent_kernel)
        )
        conversions[f"W_src{height}"] = _gates_conversion(*kernels)
    return conversions


def _attention_conversions(attention) -> dict[str, _ArrayConversion]:
    conversions = {}
    if attention.score_mode == "general":
        conversions["W_a"] = _identity_conversion(
            attention.score.attention_kernel
        )
    elif attention.score_mode == "location":
        conversions["W_loc"] = _transpose_conversion(
            attention.score.location_kernel
        )
    elif attention.score_mode == "concat":
        if attention.concat_form != "query_only":
            raise ValueError(
                "The authors' concat score has no matrix for the memory. "
                "Expected: concat_form='query_only'. Received: "
                f"concat_form={attention.concat_form!r}."
            )
        conversions["W_a"] = _transpose_conversion(attention.score.query_kernel)
        conversions["v_a"] = _identity_conversion(
            attention.score.attention_vector
        )
    elif attention.score_mode != "dot":
        raise ValueError(
            "The authors' program has the scores dot, general, concat and "
            f"location. Received: score_mode={attention.score_mode!r}."
        )
    if getattr(attention, "alignment", None) == "predictive":
        conversions["W_pos"] = _transpose_conversion(attention.position_kernel)
        conversions["v_pos"] = _identity_conversion(attention.position_vector)
    return conversions


def _check_no_other_weights(model, conversions) -> None:
    converted = {
        id(v)
        for conversion in conversions.values()
        for v in conversion.variables
    }
    paths = [
        variable.path
        for variable in model.model.weights
        if id(variable) not in converted
    ]
    if paths:
        raise ValueError(
            "The authors' program has no weights of this kind: "
            f"{paths}. Set use_bias, output_bias and attentional_bias of the "
            "model's config to false, and take a model that is not quantized "
            "and has no LoRA."
        )


def _identity_conversion(variable) -> _ArrayConversion:
    return _ArrayConversion(
        [variable], lambda array: [array], lambda array: array
    )


def _transpose_conversion(variable) -> _ArrayConversion:
    return _ArrayConversion(
        [variable], lambda array: [array.T], lambda array: array.T
    )


def _gates_conversion(*kernels) -> _ArrayConversion:
    """Stack kernels (width, 4U) vertically and convert the gate order."""
    ends = np.cumsum([kernel.shape[0] for kernel in kernels])[:-1]

    def split(array):
        return np.split(_swap_last_gates(array.T), ends)

    def join(*arrays):
        return _swap_last_gates(np.concatenate(arrays)).T

    return _ArrayConversion(kernels, split, join)


def _swap_last_gates(kernel):
    """Swap the last two of four gates: candidate and output, or reverse."""
    i, f, third, fourth = np.split(kernel, 4, axis=1)
    return np.concatenate([i, f, fourth, third], axis=1)
