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
    find_used,
    stacking_loop,
    vector_jacobians,
    with_custom_gradient,
)
from luong_keras.ops.products import Tape, shared_gradients

# Elsewhere the backend differentiates loops.
BACKENDS = ("tensorflow", "jax")


def scan(
    step,
    shared,
    states,
    inputs,
    xs,
    outputs,
    mask=None,
    layer=None,
    deferred=True,
):
    """Run a step over the first axis of sequences.

    Args:
        step: Function `step(shared, states, input, x)` that returns the new
            states, a list like `states`; x is one step of `xs`, a dict.
        shared: Nested structure of tensors, or None, that all steps read.
        states: List of tensors (B, ...) of one dtype, at least float32.
        inputs: (T, B, ...) tensor, which gets a gradient.
        xs: Dict of tensors (T, ...), which get no gradient.
        outputs: List of the indices of the states to return for all steps.
        mask: Boolean (T, B) or None; False carries the states over.
        layer: The layer whose weights the step reads, if any.
        deferred: Whether the weight gradients are deferred, on one of the
            `BACKENDS`; otherwise the backend differentiates the loop.

    Returns:
        List of the last states, and list of the `outputs` (T, B, ...).
    """
    xs = xs if mask is None else {**xs, "mask": mask}
    if deferred:
        return _Scan(step, shared, states, inputs, xs, outputs, layer).run()

    def body(states, x):
        new_states = _advance(step, shared, states, x)
        return new_states, [new_states[i] for i in outputs], []

    last_states, sequences, _ = stacking_loop(
        body, states, {**xs, "input": inputs}, len(outputs)
    )
    return list(last_states), sequences


def _advance(step, shared, states, x):
    """Return the states after a step, the old ones where its mask is False."""
    x = dict(x)
    step_input, mask = x.pop("input"), x.pop("mask", None)
    new_states = step(shared, states, step_input, x)
    if mask is None:
        return new_states
    keep = ops.expand_dims(mask, -1)
    return [
        ops.where(keep, new, old)
        for new, old in zip(new_states, states, strict=True)
    ]


class _Scan:
    """A scan with rematerialised steps and deferred weight gradients.

    Forward, for t = 0 ... T - 1:
        states = step(states, x_t)
        keep the states before the step, and the value z_t = x_t K of each
        product with a parameter K
    Backward, for t = T - 1 ... 0:
        run the step again from the kept states, with the kept values z_t
        differentiate it: dz_t of each product, and the gradients of the states
        keep dz_t and the operand x_t
    After the loop:
        dK = sum_t x_tᵀ dz_t, one product for all steps
    """

    def __init__(self, step, shared, states, inputs, xs, outputs, layer):
        self.step, self.outputs = step, outputs
        self.precision, self.variables = None, []
        if layer is not None:
            # TensorFlow runs the step again outside of any name scope, where a
            # name may not begin with "_", as Keras' default would.
            self.precision = _Precision(dtype=layer.dtype_policy, name="step")
            # Frozen ones too: the step has no other access to them.
            self.variables = layer.weights
        self.structure = [shared, [v.value for v in self.variables]]
        leaves = tree.flatten(self.structure)
        tensors = {id(x): x for x in leaves if x is not None}
        indices = {key: index for index, key in enumerate(tensors)}
        self.indices = [indices.get(id(x)) for x in leaves]
        self.variable_indices = {
            id(variable): index
            for variable, index in zip(
                self.variables,
                self.indices[len(leaves) - len(self.variables) :],
                strict=True,
            )
        }
        self.arguments = [inputs, *states, *tensors.values()]
        # The tape finds a parameter by its identity: on JAX, a layer converts a
        # NumPy array to a new object, but keeps a tensor.
        inputs, *held = [
            ops.convert_to_tensor(ops.stop_gradient(x)) for x in self.arguments
        ]
        self.start, self.held = held[: len(states)], held[len(states) :]
        self.xs = {**xs, "input": inputs}
        self.dtype = self.start[0].dtype
        self.operations = []
        self._record_products()

    def _record_products(self):
        """Find the products, and the parameters read outside of them.

        One step is run for this and its result discarded; a compiled program
        leaves the step out.
        """
        first = {name: x[0] for name, x in self.xs.items()}
        _, tape = self._run_step(self.held, self.start, first)
        # Made once: TensorFlow computes them although nothing reads them.
        self.zeros = [ops.zeros_like(value) for value in tape.values]
        options = {"saved": tape.values, "zeros": self.zeros}
        self.operand_counts = [len(operands) for operands in tape.operands]
        used = find_used(
            lambda *held: self._run_step(held, self.start, first, **options)[0],
            self.held,
        )
        self.direct = [index for index, is_used in enumerate(used) if is_used]

    def _run_step(self, parameters, states, x, **saved):
        """Return the new states from these parameters, and the step's tape."""
        tape = Tape(
            parameters,
            self.held,
            self.variable_indices,
            self.operations,
            **saved,
        )
        shared, values = tree.pack_sequence_as(
            self.structure,
            [None if i is None else tape.parameters[i] for i in self.indices],
        )
        pairs = list(zip(self.variables, values, strict=True))

        def run():
            return _advance(self.step, shared, list(states), x)

        with keras.StatelessScope(state_mapping=pairs), tape:
            # In the backward pass no call of a layer casts the variables.
            precision = self.precision
            new_states = run() if precision is None else precision(function=run)
        return new_states, tape

    def run(self):
        last_states, sequences, residuals = stacking_loop(
            self._forward_step,
            self.start,
            self.xs,
            num_stacked=len(self.outputs),
            num_kept=len(self.start) + len(self.operations),
        )

        def gradients(upstream):
            return self._gradients(upstream, residuals)

        results = with_custom_gradient(
            [*last_states, *sequences], gradients, self.arguments
        )
        return results[: len(last_states)], results[len(last_states) :]

    def _forward_step(self, states, x):
        new_states, tape = self._run_step(self.held, states, x)
        residuals = [*states, *(ops.cast(v, self.dtype) for v in tape.values)]
        return new_states, [new_states[i] for i in self.outputs], residuals

    def _gradients(self, upstream, residuals):
        """Return the gradients of the arguments from those of the results."""
        count = len(self.start)
        xs = {**self.xs}
        xs |= {f"residual_{i}": x for i, x in enumerate(residuals)}
        xs |= {f"d_output_{i}": x for i, x in enumerate(upstream[count:])}
        sums = [ops.zeros_like(self.held[i], self.dtype) for i in self.direct]
        d_first, (d_inputs, *stacked), _ = stacking_loop(
            self._backward_step,
            [*upstream[:count], *sums],
            xs,
            num_stacked=1 + sum(self.operand_counts) + len(self.operations),
            reverse=True,
        )
        d_start, sums = d_first[:count], d_first[count:]
        return [d_inputs, *d_start, *self._shared_gradients(sums, stacked)]

    def _backward_step(self, carry, x):
        count = len(self.start)
        d_new, sums = list(carry[:count]), carry[count:]
        for i, output in enumerate(self.outputs):
            d_new[output] = d_new[output] + x.pop(f"d_output_{i}")
        residuals = [
            x.pop(f"residual_{i}") for i in range(count + len(self.operations))
        ]
        states, values = residuals[:count], residuals[count:]
        direct = [self.held[index] for index in self.direct]

        def rerun(*arguments):
            states, (step_input, *rest) = arguments[:count], arguments[count:]
            parameters = list(self.held)
            for index, parameter in zip(self.direct, rest, strict=False):
                parameters[index] = parameter
            new_states, tape = self._run_step(
                parameters,
                states,
                {**x, "input": step_input},
                saved=values,
                zeros=rest[len(direct) :],
            )
            return new_states, sum(tape.operands, [])

        gradients, operands = vector_jacobians(
            rerun, [*states, x["input"], *direct, *self.zeros], d_new
        )
        d_states, (d_input, *rest) = gradients[:count], gradients[count:]
        d_direct, d_values = rest[: len(direct)], rest[len(direct) :]
        sums = [
            sum + ops.cast(d, self.dtype)
            for sum, d in zip(sums, d_direct, strict=True)
        ]
        outputs = [d_input, *operands, *d_values]
        return (
            [*d_states, *sums],
            [ops.cast(output, self.dtype) for output in outputs],
            [],
        )

    def _shared_gradients(self, sums, stacked):
        """Return the shared parameters' gradients from sums and products."""
        gradients = [None] * len(self.held)
        d_values, rest = stacked[sum(self.operand_counts) :], iter(stacked)
        operands = [[next(rest) for _ in range(n)] for n in self.operand_counts]
        pairs = list(zip(self.direct, sums, strict=True))
        pairs += shared_gradients(self.operations, operands, d_values)
        for index, d in pairs:
            d = ops.cast(d, self.dtype)
            previous = gradients[index]
            gradients[index] = d if previous is None else previous + d
        return [
            ops.zeros_like(x) if d is None else d
            for x, d in zip(self.held, gradients, strict=True)
        ]


class _Precision(keras.layers.Layer):
    """Layer that calls a function, with variables in its compute dtype."""

    def call(self, function):
        return function()
