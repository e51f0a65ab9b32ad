"""The two optimizers of the presets, with their gradient clipping."""

import keras
from keras import ops

from luong_keras.config.checks import check_choice, check_positive_or_none
from luong_keras.missing_package import private_name
from luong_keras.ops import masking
from luong_keras.ops.backends import sum_equal_rows
from luong_keras.ops.devices import check_one_replica


def gradient_norm(gradients, variables, count_embeddings=True):
    """Return the norm of a gradient over all variables.

    Args:
        gradients: Dense tensors, or TensorFlow's sparse slices of distinct
            rows; None counts as zero.
        variables: The variables, one per gradient.
        count_embeddings: `False` leaves out the variables named
            `"embeddings"`, as in the authors' program.

    Returns:
        A scalar.

    Example:
        >>> import numpy as np
        >>> kernel = keras.Variable(np.zeros(2), name="kernel")
        >>> float(gradient_norm([np.array([3.0, 4.0])], [kernel]))
        5.0
    """
    squares = [
        ops.sum(ops.square(masking.upcast(_values(gradient))))
        for gradient, variable in zip(gradients, variables, strict=True)
        if gradient is not None
        and not _is_replaced(variable)
        and (count_embeddings or variable.name != "embeddings")
    ]
    if not squares:
        return ops.zeros(())
    # One sum of a stack: TensorFlow would compute a chain of sums in another
    # order at every call, and runs would not be reproducible.
    return ops.sqrt(ops.sum(ops.stack(squares)))


# Part of the names of counters that start from zero in each process, which
# snapshots leave out.
NONFINITE = "nonfinite"


class _Clipped:
    """Optimizer mixin that rescales gradients with a norm above `clip_norm`.

    Unlike `global_clipnorm` of Keras, the norm can leave out the embeddings;
    their gradients are rescaled in either case.

    With `on_nonfinite` the device counts the steps whose norm is not finite in
    `nonfinite_steps`. `first_nonfinite` is the iteration of the first such
    step, or -1. Training does not wait for these variables: a reader decides
    when to read them.
    """

    def __init__(
        self,
        *args,
        clip_norm=None,
        count_embeddings=True,
        on_nonfinite=None,
        **kwargs,
    ):
        check_choice((None, "note"), on_nonfinite=on_nonfinite)
        check_positive_or_none(clip_norm=clip_norm)
        super().__init__(*args, **kwargs)
        if self.gradient_accumulation_steps:
            raise ValueError(
                "`gradient_accumulation_steps` must be None: the optimizer "
                "would clip each part of the gradient, not their sum. "
                "Received: gradient_accumulation_steps="
                f"{self.gradient_accumulation_steps!r}. Set `microbatches` of "
                "a `luong_keras.models.TrainingModel`, or the setting "
                "`training.gradient_accumulation_steps` of `luong-keras train`."
            )
        self.clip_norm = clip_norm
        self.count_embeddings = count_embeddings
        self.on_nonfinite = on_nonfinite
        self.nonfinite_steps = self.first_nonfinite = None

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        if self.on_nonfinite is None:
            return
        self.nonfinite_steps = self._add_counter("steps", 0)
        self.first_nonfinite = self._add_counter("first", -1)

    def _add_counter(self, name, value):
        return self.add_variable(
            shape=(),
            initializer=keras.initializers.Constant(value),
            dtype="int32",
            name=f"{NONFINITE}_{name}",
        )

    def apply(self, grads, trainable_variables=None):
        check_one_replica()
        # Keras would square each of several rows of one word, not their sum.
        grads = [sum_equal_rows(g) if _is_sparse(g) else g for g in grads]
        no_norm = self.clip_norm is None and self.on_nonfinite is None
        if no_norm or all(gradient is None for gradient in grads):
            return super().apply(grads, trainable_variables)
        variables = trainable_variables
        if variables is None:
            variables = private_name(
                "keras.optimizers.Optimizer._trainable_variables",
                self,
                "Or pass the variables to `apply`.",
            )
        self.build(variables)  # It returns if it is built.
        norm = gradient_norm(grads, variables, self.count_embeddings)
        if self.on_nonfinite is not None:
            self._count_nonfinite(norm, grads)
        if self.clip_norm is not None:
            # Keras divides the gradients by the factor afterwards.
            limit = self.clip_norm * (self.loss_scale_factor or 1.0)
            # The scale is 1 for small norms, including zero.
            scale = limit / ops.maximum(norm, limit)
            grads = [
                gradient
                if gradient is None or _is_replaced(variable)
                else _scale_gradient(gradient, scale)
                for gradient, variable in zip(grads, variables, strict=True)
            ]
        return super().apply(grads, trainable_variables)

    def _count_nonfinite(self, norm, grads):
        """Count the step if it is not finite."""
        finite = ops.isfinite(norm)
        if not self.count_embeddings:  # The norm does not include them.
            finite = ops.logical_and(finite, _all_finite(grads))
        is_bad = ops.cast(ops.logical_not(finite), self.nonfinite_steps.dtype)
        iteration = ops.cast(self.iterations, self.first_nonfinite.dtype)
        is_first = is_bad * ops.cast(self.nonfinite_steps == 0, is_bad.dtype)
        first = ops.where(is_first > 0, iteration, self.first_nonfinite.value)
        self.first_nonfinite.assign(first)
        self.nonfinite_steps.assign_add(is_bad)

    def get_config(self):
        return {
            **super().get_config(),
            "clip_norm": self.clip_norm,
            "count_embeddings": self.count_embeddings,
            "on_nonfinite": self.on_nonfinite,
        }


def _is_replaced(variable):
    """Test whether a "gradient" is a new value, as of float8 scales."""
    return getattr(variable, "overwrite_with_gradient", False)


def _all_finite(gradients):
    sums = [
        ops.sum(_values(gradient))
        for gradient in gradients
        if gradient is not None
    ]
    return ops.isfinite(sum(sums[1:], sums[0]))


def _is_sparse(gradient):
    """Test whether a gradient is a `tf.IndexedSlices`, as of a lookup.

    `indices` and `values` would not tell: dense torch tensors have them too.
    """
    return hasattr(gradient, "dense_shape")


def _values(gradient):
    return gradient.values if _is_sparse(gradient) else gradient


def _scale_gradient(gradient, scale):
    if _is_sparse(gradient):
        values = gradient.values * ops.cast(scale, gradient.values.dtype)
        return type(gradient)(values, gradient.indices, gradient.dense_shape)
    return gradient * ops.cast(scale, gradient.dtype)


@keras.saving.register_keras_serializable(package="luong_keras")
class ClippedSGD(_Clipped, keras.optimizers.SGD):
    """`keras.optimizers.SGD` whose clip norm may leave out the embeddings.

    Args:
        clip_norm: The largest norm of the gradient, `None` for no clipping.
        count_embeddings: Whether the norm includes the embeddings' gradients.
        on_nonfinite: The treatment of steps whose gradient is not finite:
            `None` applies the gradient, `"note"` applies it and counts the
            step.
        **kwargs: Arguments of `keras.optimizers.SGD`.
    """


@keras.saving.register_keras_serializable(package="luong_keras")
class ClippedAdam(_Clipped, keras.optimizers.Adam):
    """`keras.optimizers.Adam` whose clip norm may leave out the embeddings.

    Args:
        clip_norm: The largest norm of the gradient, `None` for no clipping.
        count_embeddings: Whether the norm includes the embeddings' gradients.
        on_nonfinite: The treatment of steps whose gradient is not finite:
            `None` applies the gradient, `"note"` applies it and counts the
            step.
        **kwargs: Arguments of `keras.optimizers.Adam`.
    """


# The gradient of a rare word is small (clipped, and a mean over a batch's
# words); with the epsilon of Keras, 1e-7, Adam would hardly move it.
_OPTIMIZERS = {
    "sgd": (ClippedSGD, {}),
    "adam": (ClippedAdam, {"epsilon": 1e-9}),
}


def make_optimizer(
    name: str = "sgd",
    learning_rate: float = 1.0,
    clip_norm: float | None = 5.0,
    weight_decay: float | None = None,
    count_embeddings: bool = True,
    on_nonfinite: str | None = None,
) -> keras.optimizers.Optimizer:
    """Make an optimizer that clips the norm of the whole gradient.

    The defaults are the paper's: plain SGD from rate 1, the gradient rescaled
    when its norm over all variables exceeds 5 (section 4.1).

    Args:
        name: `"sgd"` or `"adam"`.
        learning_rate: The initial rate.
        clip_norm: The largest norm of the gradient, `None` for no clipping.
        weight_decay: The decoupled weight decay, `None` for none.
        count_embeddings: Whether the norm includes the embeddings' gradients;
            in the authors' program it does not.
        on_nonfinite: The treatment of steps whose gradient is not finite:
            `None` applies the gradient, `"note"` applies it and counts the
            step.

    Returns:
        The optimizer.

    Raises:
        ValueError: If the name is unknown.

    Example:
        >>> make_optimizer("adam", learning_rate=1e-3).clip_norm
        5.0
    """
    check_choice(
        _OPTIMIZERS,
        " For another optimizer, give the object of `keras.optimizers` to "
        "`compile`.",
        name=name,
    )
    optimizer_class, options = _OPTIMIZERS[name]
    return optimizer_class(
        learning_rate=learning_rate,
        clip_norm=clip_norm,
        count_embeddings=count_embeddings,
        on_nonfinite=on_nonfinite,
        weight_decay=weight_decay,
        **options,
    )
