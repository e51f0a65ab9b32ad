"""First steps of a run of the paper's size, with an estimate of the total.

    PYTHONPATH=examples python benchmarks/wmt14_cost.py

The program generates a text with the size and the lengths of WMT14's
English-German pairs. One system of the workflow's `plan=wmt14` prepares this
text and is trained on it for 200 steps, like a job. The estimate covers all
training runs of the plan, with the epochs of their settings. The words are
random: the loss is the loss of random words, and nothing is translated.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from pathlib import Path

import keras
from input_pipeline import in_a_process
from large_corpus import write_generated
from speed.command_line import make_parser

from luong_keras.config.values import parse_assignments, with_values
from luong_keras.recipe import run_recipe
from reproduction.plan import read_plan

_WARMING_UP = 10  # steps
_TOGETHER = 20  # steps per printed mean loss


class Steps(keras.callbacks.Callback):
    """Callback that ends a training run after some steps.

    Attributes:
        times: End of each step.
        busy: Processor time until then, of all cores together.
        losses: Loss of a pair, summed over the steps until then.
        in_epoch: Number of steps in an epoch.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        self.times: list[float] = []
        self.busy: list[float] = []
        self.losses: list[float] = []

    def on_epoch_begin(self, epoch, logs=None):
        """Store the losses of the epochs until then."""
        self._before = self.losses[-1] if self.losses else 0.0

    def on_train_batch_end(self, batch, logs=None):
        """Store the times and the loss of the step."""
        self.in_epoch = self.params["steps"]
        self.times.append(time.perf_counter())
        self.busy.append(time.process_time())
        done = len(self.times)
        # Keras reports the mean since the start of the epoch.
        self.losses.append(self._before + logs["loss"] * (batch + 1))
        if done % _TOGETHER == 0:
            print(f"\nstep {done}, {self.recent_loss(done)}", flush=True)
        if done == self.count:
            self.model.stop_training = True

    def recent_loss(self, step: int) -> str:
        """Describe the mean loss of the last steps up to `step`."""
        first = max(0, step - _TOGETHER)
        before = self.losses[first - 1] if first else 0.0
        mean = (self.losses[step - 1] - before) / (step - first)
        return f"loss {mean:.1f} in steps {first + 1} to {step}"


def main() -> None:
    """Print the time of a step and of the whole plan."""
    parser = make_parser(__doc__)
    parser.add_argument("--pairs", type=int, default=4_500_000)
    parser.add_argument("--steps", type=int, default=200, help="at least 2")
    parser.add_argument("--row", default="local-p", help="the system")
    parser.add_argument("--text", type=Path, help="a .tsv of pairs instead")
    parser.add_argument("--folder", help="for text and run")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE"
    )
    arguments = parser.parse_args()
    plan = read_plan("wmt14")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        text = arguments.text or Path(folder, "train.tsv")
        if arguments.text is None:
            in_a_process(write_generated, text, arguments.pairs)
        given = {"data.dataset": "files", "data.train": str(text)}
        config = with_values(
            plan.rows[arguments.row].config,
            given | parse_assignments(arguments.set),
        )
        steps = Steps(arguments.steps)
        began = time.perf_counter()
        run_recipe(
            config, Path(folder, "run"), callbacks=[steps], train_only=True
        )
    epochs = {
        run: plan.trial(run)[0].config.training.epochs
        for row in plan.select_rows()
        for trial in row.trials(plan.file.seeds)
        for run in plan.runs(trial)
    }
    report(arguments.row, steps, began, list(epochs.values()))


def report(row: str, steps: Steps, began: float, epochs: list[int]) -> None:
    """Print the measured times, and the estimates from them."""
    skipped = min(_WARMING_UP, len(steps.times) - 1)
    times = _each(steps.times[skipped - 1 :])
    mean = statistics.mean(times)
    busy = statistics.mean(_each(steps.busy[skipped - 1 :]))
    epoch = mean * steps.in_epoch
    print(
        f"{row}: {len(steps.times)} steps, the first "
        f"{steps.times[0] - began:.0f} s after the text was there; from step "
        f"{skipped + 1} on {mean:.2f} s each ({min(times):.2f} to "
        f"{max(times):.2f}), {busy:.2f} s of processor time; "
        f"{steps.recent_loss(min(_TOGETHER, len(steps.times)))}, "
        f"{steps.recent_loss(len(steps.times))}"
    )
    print(f"an epoch, {steps.in_epoch:,} steps: {epoch / 3600:,.0f} hours")
    print(
        f"the plan, {len(epochs)} training runs of {min(epochs)} to "
        f"{max(epochs)} epochs, if each step takes as long as these: "
        f"{sum(epochs) * epoch / 86400:,.0f} days on this machine"
    )


def _each(ends: list[float]) -> list[float]:
    return [b - a for a, b in itertools.pairwise(ends)]


if __name__ == "__main__":
    main()
