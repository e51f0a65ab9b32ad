"""Accuracy of the forms of attention on four small tasks, and a picture.

    PYTHONPATH=examples python benchmarks/attention_tasks.py \
        --picture docs/which_attention.png

The tasks: the reversed digits of `examples/quickstart.py`, the lines of
`handwriting.py`, the forecasts of `time_series.py`, and dates in words
("Tuesday, 3 March 1987") to write as numbers ("1987-03-03"). All forms have the
same encoder, width, batches and number of steps. The steps are few, to show the
differences between the forms. The score is the share of new sequences without
an error of a greedy decoder (every symbol is right, given the right ones before
it), or the mean squared error of the forecasts; "longer" means longer sequences
than in training. `docs/which_attention.md` discusses the results.
"""

import datetime
import statistics
import time
from typing import NamedTuple

import keras
import numpy as np
from speed import attention_forms
from speed.command_line import make_parser

import handwriting
import quickstart
import time_series
from luong_keras.layers import Encoder

UNITS, BATCH = 48, 50
# Names in `docs/which_attention.md`, if they differ.
TITLES = {
    "bahdanau": "Bahdanau's",
    "no feeding": "general, no feeding",
    "scaled_dot": "scaled dot",
}


def digits(count, seed, length=quickstart.LENGTH):
    """Return the digits of `quickstart.py`, without padding."""
    (source, shifted), target = quickstart.make_data(count, seed, length)
    return (source, np.ones(source.shape, bool), shifted), target


def longer_digits(count, seed):
    """Return more digits per sequence than in training."""
    return digits(count, seed, length=quickstart.LENGTH * 3 // 2)


def longer_lines(count, seed):
    """Return more handwritten digits per line than in training."""
    return handwriting.make_data(count, seed, fewest=12, most=14)


def dates(count, seed, new=False):
    """Return days from 1950 to 2049 in one of three forms, as characters.

    Every eighth day is only among the `new` ones.
    """
    random = np.random.default_rng(seed)
    first = datetime.date(1950, 1, 1).toordinal()
    numbers = 8 * random.integers(0, 36_500 // 8, count)
    if not new:
        numbers += random.integers(1, 8, count)
    days = [datetime.date.fromordinal(first + int(day)) for day in numbers]
    forms = random.choice(
        ["{:%A}, {} {:%B} {}", "{1} {2:%B} {3}", "{0:%B} {1}, {3}"], count
    )
    written = [
        form.format(day, day.day, day, day.year)
        for form, day in zip(forms, days, strict=True)
    ]
    source = characters(written, max(map(len, written)))
    target = characters([day.isoformat() for day in days], 10)
    shifted = np.append(np.zeros((count, 1), int), target[:, :-1], axis=1)
    return (source, source > 0, shifted), target


def new_dates(count, seed):
    """Return days that training does not have."""
    return dates(count, seed, new=True)


def characters(texts, length):
    """Return codes (B, length) of characters, padded with zeros."""
    return np.array([list(text.ljust(length, "\0").encode()) for text in texts])


class Task(NamedTuple):
    """A task from one sequence to another.

    Attributes:
        make_data: Function of a count and a seed that returns ((source,
            mask, decoder input), target).
        source, target: Numbers of symbols; negative numbers are widths of
            float features.
        steps: Number of training steps.
        reach: Largest number of memory positions, for location.
        half_width: Half width of local attention.
        longer: A `make_data` for longer sequences.
        new: A `make_data` for the test, if it has to leave out the training's.
    """

    make_data: object
    source: int
    target: int
    steps: int
    reach: int
    half_width: int
    longer: object = None
    new: object = None

    @property
    def forecasts(self):
        """True if the target consists of numbers."""
        return self.target < 0


TASKS = {
    "digits": Task(digits, 10, 11, 200, 12, 3, longer_digits),
    "handwriting": Task(
        handwriting.make_data, -2, 11, 360, 14, 2, longer_lines
    ),
    "series": Task(time_series.make_data, -3, -2, 300, 72, 6),
    "dates": Task(dates, 128, 128, 600, 30, 4, new=new_dates),
}


def read(numbers, embedding):
    """Return an input, and its embedded symbols or float features."""
    if numbers < 0:
        inputs = keras.Input((None, -numbers))
        return inputs, inputs
    inputs = keras.Input((None,), dtype="int32")
    return inputs, keras.layers.Embedding(numbers, embedding)(inputs)


def make_model(task, form):
    """Build the model, and a model of its alignments or None."""
    source, embedded = read(task.source, 32)
    shifted, embedded_target = read(task.target, 32)
    mask = keras.Input((None,), dtype="bool")
    shorter, every = mask, 1
    if task.make_data is handwriting.make_data:
        # As in that example: one state is 4 movements, one digit 3 states.
        embedded = keras.layers.Conv1D(UNITS, 8, 4, "same", activation="relu")(
            embedded
        )
        shorter, every = mask[:, ::4], 3
    memory, *states = Encoder(UNITS, bidirectional=True)(embedded, mask=shorter)
    decoder = attention_forms.make_decoder(
        form, UNITS, task.reach, task.half_width
    )
    call = {"initial_state": states}
    if form == "none":
        vectors, watched = decoder(embedded_target, **call), None
    else:
        vectors, alignments = decoder(
            embedded_target,
            memory=memory[:, ::every],
            memory_mask=shorter[:, ::every],
            start_position=0,
            return_attention_scores=True,
            **call,
        )
        watched = keras.Model([source, mask, shifted], alignments)
    outputs = 1 if task.forecasts else task.target
    outputs = keras.layers.Dense(outputs)(vectors)
    return keras.Model([source, mask, shifted], outputs), watched


def score(task, model, data):
    """Return the share of sequences without error, or the squared error."""
    inputs, target = data
    found = model.predict(inputs, 200, 0)
    if task.forecasts:
        return float(np.square(found - target).mean())
    return float((found.argmax(axis=-1) == target).all(axis=1).mean())


def train(task, form, seed):
    """Train; return the scores, the seconds and the model of alignments."""
    keras.utils.set_random_seed(seed)
    model, watched = make_model(task, form)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(
        keras.optimizers.Adam(5e-3),
        "mse" if task.forecasts else loss,
        jit_compile=keras.backend.backend() == "jax",
    )
    start = time.process_time()
    inputs, target = task.make_data(task.steps * BATCH // 2, seed)
    model.fit(inputs, target, BATCH, 2, 0)
    make_new = task.new or task.make_data
    found = [score(task, model, make_new(1_000, 1_000 + seed))]
    if task.longer:
        found.append(score(task, model, task.longer(500, 2_000 + seed)))
    return found, time.process_time() - start, watched


def draw(watched, path):
    """Draw each form's alignment of a sequence: target down, source across."""
    from matplotlib.figure import Figure
    from PIL import Image

    inputs, target = digits(1, 7)
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06)
    panels = figure.subplots(2, -(-len(watched) // 2), squeeze=False).ravel()
    for axes in panels:
        axes.axis("off")
    for axes, (form, model) in zip(panels, watched.items(), strict=False):
        weights = model.predict(inputs, verbose=0)[0]
        axes.axis("on")
        axes.imshow(weights, cmap="Greys", vmin=0, vmax=1)
        axes.set_title(TITLES.get(form, form), fontsize=9)
        axes.set_xticks(range(weights.shape[1]), inputs[0][0], fontsize=7)
        axes.set_yticks(range(weights.shape[0]), target[0], fontsize=7)
    figure.supxlabel("source digit read", fontsize=9)
    figure.supylabel("target digit written", fontsize=9)
    figure.savefig(path, dpi=80)
    Image.open(path).convert("L").save(path, optimize=True)  # only greys
    print(f"written to {path}")


def main() -> None:
    """Train every form on every task and print the scores."""
    parser = make_parser(__doc__)
    forms, names = attention_forms.FORMS, tuple(TASKS)
    parser.add_argument("--forms", nargs="+", choices=forms, default=forms)
    parser.add_argument("--tasks", nargs="+", choices=names, default=names)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument(
        "--picture", help="file for the alignments of one sequence of digits"
    )
    options = parser.parse_args()
    scores, watched, seconds = {}, {}, {}
    for seed in options.seeds:
        for name in options.tasks:
            for form in options.forms:
                found, took, model = train(TASKS[name], form, seed)
                keep(scores, name, form, found)
                seconds.setdefault(name, []).append(took)
                if name == "digits" and model and form not in watched:
                    watched[form] = model
                shown = " ".join(f"{number:.3f}" for number in found)
                print(
                    f"{seed} {name:12} {form:11} {shown} {took:.0f} s",
                    flush=True,
                )
    for (name, part), column in scores.items():
        print(f"\n{name}{part}")
        for form, numbers in column.items():
            each = " ".join(f"{number:.3f}" for number in numbers)
            print(f"  {form:11} {statistics.mean(numbers):.3f} ({each})")
    for name, each in seconds.items():
        print(f"{name}: {statistics.mean(each):.0f} s of CPU a model")
    if options.picture:
        draw(watched, options.picture)


def keep(scores, name, form, found):
    """Store the scores of one model by task and kind of sequences."""
    for part, number in zip(("", ", longer"), found, strict=False):
        column = scores.setdefault((name, part), {})
        column.setdefault(form, []).append(number)


if __name__ == "__main__":
    main()
