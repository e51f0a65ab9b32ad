"""Operations of a loop's step whose weights wait until the loop is over.

A loop is differentiated by running its steps again, from the states that it
saved, while the backend watches. An `Operation` is not run again: its value is
the saved one and its input's gradient the one that it defines, while the
gradient of its value is put aside. When the loop is over, the inputs and these
gradients of all steps make the gradients of its weights at once.

A step does not know how it is run: it calls functions such as
`products.product`, which ask for the `current` run.
"""

from contextvars import ContextVar

from keras import ops

_current = ContextVar("luong_keras_step_run", default=None)


def current():
    """The run that the step being computed belongs to, or None."""
    return _current.get()


class Operation:
    """A function of one tensor of a step, and of parameters of the loop.

    Attributes:
        places: those of its parameters among all of the loop.
    """

    places: tuple[int, ...] = ()

    def value(self, x, **options):
        """The value of x (B, ...), and a list of what its gradient reads."""
        raise NotImplementedError

    def input_gradient(self, d_value, x, kept, **options):
        """The gradient of x; `kept` is the list that `value` gave."""
        raise NotImplementedError

    def parameter_gradients(self, x, d_value):
        """The gradients of the parameters from all steps (T, B, ...)."""
        raise NotImplementedError


class Run:
    """One run of a step, which finds its operations in the order of calls.

    Args:
        parameters: list of tensors, as the step reads them.
        held: the same as mere numbers, for the operations.
        operations: list of those that earlier runs of the step have met; the
            first run fills it.
    """

    def __init__(self, parameters, held, operations):
        self.parameters = parameters
        self.held = held
        self.operations = operations
        self.met = 0

    def __enter__(self):
        self._token = _current.set(self)
        return self

    def __exit__(self, *error):
        _current.reset(self._token)

    def place(self, x):
        """Where `x` stands among the parameters, or None."""
        for place, parameter in enumerate(self.parameters):
            if x is parameter:
                return place
        return None

    def apply(self, make, x, **options):
        """The value of an operation; `make()` makes it for the first run."""
        if self.met == len(self.operations):
            self.operations.append(make())
        operation = self.operations[self.met]
        self.met += 1
        return self._value(operation, x, options)

    def _value(self, operation, x, options):
        raise NotImplementedError


class Recording(Run):
    """Computes operations and keeps what a `Replay` needs.

    Attributes:
        kept: for every operation its value and what its gradient reads.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.kept = []

    def _value(self, operation, x, options):
        value, kept = operation.value(x, **options)
        self.kept.append([value, *kept])
        return value


class Replay(Run):
    """Takes the values of operations from a recording.

    Args:
        kept: what the recording has kept.
        zeros: for every operation a zero of the shape of its value, whose
            gradient is then that of the value.

    Attributes:
        inputs: what the operations were called with.
    """

    def __init__(self, *arguments, kept, zeros):
        super().__init__(*arguments)
        self.kept = kept
        self.zeros = zeros
        self.inputs = []

    def _value(self, operation, x, options):
        value, *kept = self.kept[len(self.inputs)]
        zero = self.zeros[len(self.inputs)]
        self.inputs.append(x)

        @ops.custom_gradient
        def saved(x, zero):
            def gradient(*arguments, upstream=None):
                d_value = arguments[0] if upstream is None else upstream
                d_x = operation.input_gradient(d_value, x, kept, **options)
                return ops.cast(d_x, x.dtype), d_value

            return value, gradient

        return saved(x, zero)
