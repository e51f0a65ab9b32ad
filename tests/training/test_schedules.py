import keras
import numpy as np
import pytest

from luong_keras.training.monitoring import ReduceOnPlateau
from luong_keras.training.schedules import (
    LearningRateHalving,
    halved_rate,
    rate_halved_after_epoch,
    rate_halved_by_iteration,
)
from tests.layer_checks import small_model
from tests.training.fit_helpers import SEVERAL_STEPS


def test_halved_rate_follows_the_paper():
    rates = [halved_rate(1.0, 10 * epoch, 10) for epoch in range(8)]
    assert rates == [1, 1, 1, 1, 1, 0.5, 0.25, 0.125]
    # The rate changes between epochs 5 and 6, not within them.
    rates = [halved_rate(1.0, step, 10) for step in (49, 50, 59)]
    assert rates == [1, 0.5, 0.5]
    with_dropout = [
        halved_rate(1.0, step, 10, first_halved_epoch=9)
        for step in (70, 80, 90)
    ]
    assert with_dropout == [1, 0.5, 0.25]


def test_halved_rate_takes_halvings_per_epoch_and_a_factor():
    rates = [halved_rate(8.0, step, 5, 2, 2) for step in range(4, 12)]
    # Three of five steps begin in the first half of the epoch.
    assert rates == [8, 4, 4, 4, 2, 2, 1, 1]
    assert halved_rate(1.0, 5, 5, 2, factor=0.1) == pytest.approx(0.1)


def rates_of_fit(model, schedule, batch_size=2, **options):
    """Train on four rows and return the learning rate of each step."""
    rates, x = [], np.zeros((4, 1))

    def record(batch, logs):
        rates.append(float(model.optimizer.learning_rate))

    seen = keras.callbacks.LambdaCallback(on_train_batch_begin=record)
    callbacks = [schedule, seen]
    model.fit(x, x, batch_size, callbacks=callbacks, verbose=0, **options)
    return rates


def test_the_callback_sets_the_rate_and_resumes():
    schedule = LearningRateHalving(2, halvings_per_epoch=2)
    model = small_model(0.5)
    rates = rates_of_fit(model, schedule, 1, epochs=2)
    assert rates == [0.5] * 4 + [0.25] * 2 + [0.125] * 2
    assert model.history.history["learning_rate"] == [0.5, 0.125]

    # In a resumed run, the optimizer has the last rate, the state the first.
    resumed = LearningRateHalving(2, halvings_per_epoch=2)
    resumed.set_state(schedule.get_state())
    later = {"initial_epoch": 2, "epochs": 3}
    rates = rates_of_fit(small_model(0.125), resumed, **later)
    assert rates == [0.0625, 0.03125]


def test_schedules_used_twice_read_the_rate_and_length_of_each_fit():
    schedule = LearningRateHalving(2)
    first = rates_of_fit(small_model(1.0), schedule, 1, epochs=2)
    assert first == [1.0] * 4 + [0.5] * 4
    second = rates_of_fit(small_model(8.0), schedule, 2, epochs=2)
    assert second == [8.0] * 2 + [4.0] * 2


def test_later_epochs_use_the_initial_rate_of_their_run():
    schedule, model = LearningRateHalving(2), small_model(8.0)
    rates_of_fit(model, schedule, epochs=2)
    # The optimizer has 4.0; the callback remembers the initial rate.
    later = {"initial_epoch": 2, "epochs": 3}
    assert rates_of_fit(model, schedule, **later) == [2.0] * 2
    given = LearningRateHalving(2, initial_rate=8.0)
    assert rates_of_fit(model, given, **later) == [2.0] * 2
    with pytest.raises(ValueError, match="initial_epoch=2.*`initial_rate=`"):
        rates_of_fit(model, LearningRateHalving(2), **later)


def test_runs_resumed_in_the_first_epoch_keep_the_initial_rate():
    schedule = LearningRateHalving(1)
    schedule.set_state({"initial_rate": 8.0})
    # The first half of the epoch set 4.0.
    assert rates_of_fit(small_model(4.0), schedule) == [4.0] * 2


def test_a_plateau_of_a_missing_value_is_refused():
    plateau = ReduceOnPlateau("val_perplexity")
    plateau.set_model(small_model(1.0))
    with pytest.raises(ValueError, match=r"'val_perplexity'.*\['val_loss'\]"):
        plateau.on_epoch_end(0, {"val_loss": 1.0})
    with pytest.raises(ValueError, match=r"'loss'.*\['val_loss'\]"):
        ReduceOnPlateau("loss").on_epoch_end(0, {"val_loss": 1.0})
    with pytest.warns(UserWarning, match="'val_perplexity': it had no valida"):
        plateau.on_epoch_end(0, {"loss": 1.0})
    assert plateau.best is None and plateau.waited == 0


@pytest.mark.parametrize("mode, sign", [("min", 1), ("max", -1)])
def test_the_rate_is_reduced_on_a_plateau_and_after_resuming(mode, sign):
    def make():
        made = ReduceOnPlateau(
            "value", mode, patience=1, min_delta=0.5, min_rate=0.2
        )
        made.set_model(model)
        return made

    model = small_model(1.0)
    plateau = make()
    rates = []
    for epoch, value in enumerate([5, 4, 3.5, 6, 3, 3, 3, 3, 3]):
        if epoch == 3:  # within the patience
            state, plateau = plateau.get_state(), make()
            plateau.set_state(state)
        plateau.on_epoch_end(epoch, {"value": sign * value})
        rates.append(float(model.optimizer.learning_rate))
    assert rates == pytest.approx([1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.2])


def test_a_second_run_forgets_the_plateau_of_the_first():
    plateau = ReduceOnPlateau("value", "min", patience=0)
    plateau.set_model(small_model(1.0))
    for value in (5.0, 6.0):  # the first epochs of two runs
        plateau.on_epoch_begin(0)
        plateau.on_epoch_end(0, {"value": value})
    assert float(plateau.model.optimizer.learning_rate) == 1.0


def test_a_rate_below_the_lowest_one_stays_on_a_plateau():
    plateau = ReduceOnPlateau("value", min_rate=0.2)
    plateau.set_model(small_model(0.1))
    for epoch in range(3):
        plateau.on_epoch_end(epoch, {"value": 1})
    assert float(plateau.model.optimizer.learning_rate) == pytest.approx(0.1)


@SEVERAL_STEPS
def test_rates_within_an_execution_are_equal():
    def train(halvings_per_epoch):
        schedule = LearningRateHalving(1, halvings_per_epoch)
        rates_of_fit(small_model(1.0, steps_per_execution=2), schedule, 1)

    train(2)
    with pytest.raises(ValueError, match="=2, and the rate falls from 0.5"):
        train(4)


@pytest.mark.parametrize("finetune_epoch", [0, 2])
@pytest.mark.parametrize("epoch_fraction", [1.0, 0.5])
@pytest.mark.parametrize("steps", [6, 7])
def test_halving_follows_the_authors_program(
    steps, epoch_fraction, finetune_epoch
):
    # loops as in the description of the program
    period = int(steps * epoch_fraction)
    after_epoch, by_iteration, rates = 1.0, 1.0, []
    for iteration in range(1, 6 * steps + 1):
        rates.append((after_epoch, by_iteration))
        epoch = -(-iteration // steps)
        if epoch > finetune_epoch and iteration % period == 0:
            after_epoch *= 0.5
        if iteration / steps >= finetune_epoch and iteration % period == 0:
            by_iteration *= 0.5
    assert rates == [
        tuple(
            rule(1.0, step, steps, finetune_epoch, epoch_fraction)
            for rule in (rate_halved_after_epoch, rate_halved_by_iteration)
        )
        for step in range(6 * steps)
    ]


after = LearningRateHalving.after_epoch
by_iteration = LearningRateHalving.by_iteration


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "schedule, expected",
    [
        (after(1), [1, 1, 1, 1, 0.5, 0.5]),
        (by_iteration(2, 1), [1, 1, 0.5, 0.5, 0.25, 0.25]),
        (by_iteration(3, 1), [1, 1, 1, 0.5, 0.5, 0.5]),
        (after(1, 0.5, factor=0.1), [1, 1, 1, 0.1, 0.01, 0.001]),
        (
            LearningRateHalving(2, steps_per_epoch=1, factor=0.1),
            [1, 0.1, 0.1, 0.01, 0.01, 0.001],
        ),
        (after(1, initial_rate=8.0, steps_per_epoch=1), [8, 8, 8, 4, 4, 2]),
        (
            by_iteration(2, 1, initial_rate=8.0, steps_per_epoch=3, factor=0.1),
            [8, 8, 0.8, 0.08, 0.008, 0.008],
        ),
    ],
    ids=[
        *("after", "by iteration", "another epoch", "half epochs"),
        *("given length", "after, all given", "by iteration, all given"),
    ],
)
def test_named_constructors_set_the_rates(schedule, expected):
    rates = rates_of_fit(small_model(1.0), schedule, epochs=3)
    np.testing.assert_allclose(rates, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "callback", [LearningRateHalving(), after(), ReduceOnPlateau("loss")]
)
@pytest.mark.parametrize("scaled", [False, True])
def test_optimizers_with_a_schedule_are_refused(callback, scaled):
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
    optimizer = keras.optimizers.Adam(schedule)
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    message = "must be a number.*ExponentialDecay in Adam"
    with pytest.raises(ValueError, match=message):
        rates_of_fit(small_model(optimizer), callback)
