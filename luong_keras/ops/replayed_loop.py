"""A loop over time that is differentiated by running its steps again.

The backward loop runs every step once more, from the states that the forward
loop saved, and lets the backend differentiate it. What costs time in a step is
not repeated: the operations of `ops.deferred`, products with weights among
them, have saved their values, and their weights get their gradients from all
steps at once, behind the loop. Parameters that a step reads in any other way
add up their gradients step by step.

With z_t = x_t K in the step t: the loop makes dz_t and dx_t = dz_t Kᵀ, and
dK = Xᵀ dZ is one product behind it.
"""

from keras import ops

from luong_keras.ops.deferred import Recording, Replay
from luong_keras.ops.time_loop import time_loop, with_gradient
from luong_keras.ops.vector_jacobian import reads, vector_jacobians


def replayed_loop(step, parameters, states, inputs, xs, outputs):
    """Runs a step over the first axis of sequences.

    Args:
        step: `step(parameters, states, input, x)` to the new states, a list
            like `states`; x is a dict of one step of every sequence in `xs`.
        parameters: list of tensors that all steps read.
        states: list of tensors (B, ...) of one dtype.
        inputs: (T, B, ...), which has a gradient.
        xs: dict of tensors (T, ...), which have none.
        outputs: which of the states are wanted at all steps.

    Returns:
        Lists of the last states, and of the wanted ones (T, B, ...).
    """
    return _ReplayedLoop(step, parameters, states, inputs, xs, outputs).run()


class _ReplayedLoop:
    def __init__(self, step, parameters, states, inputs, xs, outputs):
        self.step = step
        self.arguments = [inputs, *states, *parameters]
        inputs, *held = [ops.stop_gradient(x) for x in self.arguments]
        self.start, self.held = held[: len(states)], held[len(states) :]
        self.xs = {**xs, "input": inputs}
        self.outputs = outputs
        self.dtype = self.start[0].dtype
        self.operations = []
        self._meet_operations()

    def _meet_operations(self):
        """The operations, what they keep, which parameters are read beside.

        From one step that is computed in vain; a compiled program leaves it
        out.
        """
        first = {name: x[0] for name, x in self.xs.items()}
        with self._recording() as run:
            self._new(self.held, self.start, first)
        self.widths = [len(each) for each in run.kept]

        def again(*parameters):
            run = self._replay(parameters, recorded, recorded_zeros)
            with run:
                return self._new(parameters, self.start, first)

        recorded = run.kept
        recorded_zeros = _zeros(recorded)
        self.beside = [
            place for place, read in enumerate(reads(again, self.held)) if read
        ]

    def run(self):
        last, sequences, kept = time_loop(
            self._forward,
            self.start,
            self.xs,
            stacked=len(self.outputs),
            kept=len(self.start) + sum(self.widths),
        )

        def gradients(upstream):
            return self._gradients(upstream, kept)

        found = with_gradient([*last, *sequences], gradients, self.arguments)
        return found[: len(last)], found[len(last) :]

    def _forward(self, states, x):
        with self._recording() as run:
            new = self._new(self.held, states, x)
        kept = [ops.cast(k, self.dtype) for each in run.kept for k in each]
        return new, [new[i] for i in self.outputs], [*states, *kept]

    def _gradients(self, upstream, kept):
        """Those of the arguments, from those of all results."""
        height = len(self.start)
        xs = {**self.xs}
        xs |= {f"kept_{i}": x for i, x in enumerate(kept)}
        xs |= {f"d_output_{i}": x for i, x in enumerate(upstream[height:])}
        sums = [ops.zeros_like(self.held[i], self.dtype) for i in self.beside]
        d_first, found, _ = time_loop(
            self._backward,
            [*upstream[:height], *sums],
            xs,
            stacked=1 + 2 * len(self.operations),
            reverse=True,
        )
        d_inputs, *found = found
        d_start, sums = d_first[:height], d_first[height:]
        return [d_inputs, *d_start, *self._parameter_gradients(sums, found)]

    def _backward(self, carry, x):
        height = len(self.start)
        d_new, sums = list(carry[:height]), carry[height:]
        for i, output in enumerate(self.outputs):
            d_new[output] = d_new[output] + x.pop(f"d_output_{i}")
        kept = [x.pop(f"kept_{i}") for i in range(height + sum(self.widths))]
        states, kept = kept[:height], self._grouped(kept[height:])
        read = [self.held[place] for place in self.beside]
        given = x.pop("input")

        def again(*arguments):
            states, (given, *rest) = arguments[:height], arguments[height:]
            parameters = list(self.held)
            for place, parameter in zip(self.beside, rest, strict=False):
                parameters[place] = parameter
            zeros = rest[len(self.beside) :]
            with self._replay(parameters, kept, zeros) as run:
                new = self._new(parameters, states, {"input": given, **x})
            return new, run.inputs

        found, inputs = vector_jacobians(
            again, [*states, given, *read, *_zeros(kept)], d_new
        )
        d_states, (d_given, *rest) = found[:height], found[height:]
        d_read, d_values = rest[: len(read)], rest[len(read) :]
        sums = [
            sum + ops.cast(d, self.dtype)
            for sum, d in zip(sums, d_read, strict=True)
        ]
        stacked = [d_given, *inputs, *d_values]
        return (
            [*d_states, *sums],
            [ops.cast(each, self.dtype) for each in stacked],
            [],
        )

    def _parameter_gradients(self, sums, found):
        """From the sums of the steps, and from all steps at once."""
        inputs, d_values = (
            found[: len(self.operations)],
            found[len(self.operations) :],
        )
        gradients = [None] * len(self.held)
        places, more = list(self.beside), list(sums)
        for operation, x, d in zip(
            self.operations, inputs, d_values, strict=True
        ):
            places += operation.places
            more += operation.parameter_gradients(x, d)
        for place, d in zip(places, more, strict=True):
            old = gradients[place]
            gradients[place] = d if old is None else old + d
        return [
            ops.zeros_like(x) if d is None else d
            for x, d in zip(self.held, gradients, strict=True)
        ]

    # Runs of the step.

    def _recording(self):
        return Recording(self.held, self.held, self.operations)

    def _replay(self, parameters, kept, zeros):
        return Replay(
            list(parameters),
            self.held,
            self.operations,
            kept=kept,
            zeros=zeros,
        )

    def _new(self, parameters, states, x):
        x = dict(x)
        return self.step(list(parameters), list(states), x.pop("input"), x)

    def _grouped(self, kept):
        """A list for every operation, of a list for all."""
        kept = iter(kept)
        return [[next(kept) for _ in range(n)] for n in self.widths]


def _zeros(kept):
    return [ops.zeros_like(value) for value, *_ in kept]
