"""A scan over time with rematerialised steps and deferred weight gradients.

Automatic differentiation of a loop saves all values that a step computes, and
adds to the gradient of each weight in each step. Here the forward scan saves
the states and the values of the step's products (`ops.products`). The backward
scan recomputes each step from these while the backend differentiates it; the
products are read, not multiplied again. The scan returns their operands x_t
and gradients dz_t, from which one product gives the gradient of a shared
parameter: with z_t = x_t K, dK = sum_t x_tᵀ dz_t.

The gradient of a parameter that is read outside these products is added up
step by step.
"""

import keras
from keras import ops, tree

from luong_keras.ops.loops import (
    carried,
    reads,
    stacking_loop,
    vector_jacobians,
    with_custom_gradient,
)
from luong_keras.ops.products import Tape, shared_gradients

# Elsewhere the backend differentiates loops.
BACKENDS = ("tensorflow", "jax")


def scan(step, shared, states, inputs, xs, outputs, mask=None, layer=None):
    """Run a step over the first axis of sequences, on TensorFlow and JAX.

    Args:
        step: function `step(shared, states, input, x)` that returns the new
            states, a list like `states`; x is one step of `xs`, a dict.
        shared: nested structure of tensors, or None, that all steps read.
        states: list of tensors (B, ...) of one dtype, at least float32.
        inputs: (T, B, ...) tensor, which gets a gradient.
        xs: dict of tensors (T, ...), which get no gradient.
        outputs: list of the indices of the states to return for all steps.
        mask: boolean (T, B) or None; False carries the states over.
        layer: the layer whose weights the step reads, if any.

    Returns:
        List of the last states, and list of the `outputs` (T, B, ...).
    """
    xs = xs if mask is None else {**xs, "mask": mask}
    return _Scan(step, shared, states, inputs, xs, outputs, layer).run()


class _Scan:
    def __init__(self, step, shared, states, inputs, xs, outputs, layer):
        self.step, self.outputs = step, outputs
        self.precision = None
        variables = []
        if layer is not None:
            self.precision = _Precision(dtype=layer.dtype_policy)
            # Frozen ones too: the step has no other access to them.
            variables = layer.weights
        self.variables = variables
        self.structure = [shared, [v.value for v in variables]]
        leaves = tree.flatten(self.structure)
        found = {id(x): x for x in leaves if x is not None}
        order = {each: place for place, each in enumerate(found)}
        self.places = [order.get(id(x)) for x in leaves]
        self.variable_places = {
            id(variable): place
            for variable, place in zip(
                variables,
                self.places[len(leaves) - len(variables) :],
                strict=True,
            )
        }
        self.arguments = [inputs, *states, *found.values()]
        inputs, *held = [ops.stop_gradient(x) for x in self.arguments]
        self.start, self.held = held[: len(states)], held[len(states) :]
        self.xs = {**xs, "input": inputs}
        self.dtype = self.start[0].dtype
        self.operations = []
        self._meet_products()

    def _meet_products(self):
        """Find the products, and the parameters read outside of them.

        One step is run for this and its result discarded; a compiled program
        leaves the step out.
        """
        first = {name: x[0] for name, x in self.xs.items()}
        _, tape = self._new(self.held, self.start, first)
        # Made once: TensorFlow computes them although nothing reads them.
        self.zeros = [ops.zeros_like(value) for value in tape.values]
        again = {"saved": tape.values, "zeros": self.zeros}
        self.counts = [len(each) for each in tape.operands]
        read = reads(
            lambda *held: self._new(held, self.start, first, **again)[0],
            self.held,
        )
        self.beside = [place for place, is_read in enumerate(read) if is_read]

    def _new(self, parameters, states, x, **saved):
        """Return the new states from these parameters, and the step's tape."""
        x, states = dict(x), list(states)
        given, mask = x.pop("input"), x.pop("mask", None)
        tape = Tape(
            parameters,
            self.held,
            self.variable_places,
            self.operations,
            **saved,
        )
        shared, values = tree.pack_sequence_as(
            self.structure,
            [None if i is None else tape.parameters[i] for i in self.places],
        )
        pairs = list(zip(self.variables, values, strict=True))

        def new():
            return self.step(shared, states, given, x)

        with keras.StatelessScope(state_mapping=pairs), tape:
            # In the backward pass no call of a layer casts the variables.
            precise = self.precision
            found = new() if precise is None else precise(function=new)
        return carried(found, states, mask), tape

    def run(self):
        last, sequences, kept = stacking_loop(
            self._forward,
            self.start,
            self.xs,
            stacked=len(self.outputs),
            kept=len(self.start) + len(self.operations),
        )

        def gradients(upstream):
            return self._gradients(upstream, kept)

        found = with_custom_gradient(
            [*last, *sequences], gradients, self.arguments
        )
        return found[: len(last)], found[len(last) :]

    def _forward(self, states, x):
        new, tape = self._new(self.held, states, x)
        kept = [*states, *(ops.cast(v, self.dtype) for v in tape.values)]
        return new, [new[i] for i in self.outputs], kept

    def _gradients(self, upstream, kept):
        """Return the gradients of the arguments from those of the results."""
        height = len(self.start)
        xs = {**self.xs}
        xs |= {f"kept_{i}": x for i, x in enumerate(kept)}
        xs |= {f"d_output_{i}": x for i, x in enumerate(upstream[height:])}
        sums = [ops.zeros_like(self.held[i], self.dtype) for i in self.beside]
        d_first, (d_inputs, *left), _ = stacking_loop(
            self._backward,
            [*upstream[:height], *sums],
            xs,
            stacked=1 + sum(self.counts) + len(self.operations),
            reverse=True,
        )
        d_start, sums = d_first[:height], d_first[height:]
        return [d_inputs, *d_start, *self._shared_gradients(sums, left)]

    def _backward(self, carry, x):
        height = len(self.start)
        d_new, sums = list(carry[:height]), carry[height:]
        for i, output in enumerate(self.outputs):
            d_new[output] = d_new[output] + x.pop(f"d_output_{i}")
        kept = [
            x.pop(f"kept_{i}") for i in range(height + len(self.operations))
        ]
        states, values = kept[:height], kept[height:]
        beside = [self.held[place] for place in self.beside]

        def again(*arguments):
            states, (given, *rest) = arguments[:height], arguments[height:]
            parameters = list(self.held)
            for place, parameter in zip(self.beside, rest, strict=False):
                parameters[place] = parameter
            new, tape = self._new(
                parameters,
                states,
                {**x, "input": given},
                saved=values,
                zeros=rest[len(beside) :],
            )
            return new, sum(tape.operands, [])

        found, operands = vector_jacobians(
            again, [*states, x["input"], *beside, *self.zeros], d_new
        )
        d_states, (d_given, *rest) = found[:height], found[height:]
        d_beside, d_values = rest[: len(beside)], rest[len(beside) :]
        sums = [
            sum + ops.cast(d, self.dtype)
            for sum, d in zip(sums, d_beside, strict=True)
        ]
        left = [d_given, *operands, *d_values]
        return (
            [*d_states, *sums],
            [ops.cast(each, self.dtype) for each in left],
            [],
        )

    def _shared_gradients(self, sums, left):
        """Return the shared parameters' gradients from sums and products."""
        gradients = [None] * len(self.held)
        d_values, left = left[sum(self.counts) :], iter(left)
        operands = [[next(left) for _ in range(n)] for n in self.counts]
        found = list(zip(self.beside, sums, strict=True))
        found += shared_gradients(self.operations, operands, d_values)
        for place, d in found:
            d = ops.cast(d, self.dtype)
            old = gradients[place]
            gradients[place] = d if old is None else old + d
        return [
            ops.zeros_like(x) if d is None else d
            for x, d in zip(self.held, gradients, strict=True)
        ]


class _Precision(keras.layers.Layer):
    """Layer that calls a function, with variables in its compute dtype."""

    def call(self, function):
        return function()
