"""Reductions over the replicas of a `tf.distribute` strategy.

Everywhere else, and on other backends, there is one replica.
"""

from keras import backend, ops


def replica_count():
    """The number of replicas that share a batch."""
    if backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync


def _context():
    """That of this replica, None where one is alone or all are meant."""
    if replica_count() == 1:
        return None
    import tensorflow as tf

    return tf.distribute.get_replica_context()


def sum_over_replicas(values):
    """The sums over the replicas, the same on each.

    Args:
        values: list of tensors, of TensorFlow's sparse slices and of None,
            which stays.

    Returns:
        A list; of sparse slices those of all replicas, one after the other.
    """
    context = _context()
    if context is None:
        return list(values)
    given = [value for value in values if value is not None]
    summed = iter(context.all_reduce("SUM", given))
    return [None if value is None else next(summed) for value in values]


def cond_of_replicas(condition, yes, no, arguments):
    """`ops.cond` for functions that write variables.

    TensorFlow refuses that in a branch of one replica: the branches begin
    where the replicas have met.

    Args:
        condition: a scalar, the same on each replica.
        yes: a function of the arguments.
        no: another.
        arguments: list of what each replica has.
    """
    context = _context()
    if context is None:
        ops.cond(condition, lambda: yes(*arguments), lambda: no(*arguments))
        return

    def met(strategy, condition, *arguments):
        def on_each(function):
            strategy.extended.call_for_each_replica(function, arguments)

        (condition, *_) = strategy.experimental_local_results(condition)
        ops.cond(condition, lambda: on_each(yes), lambda: on_each(no))

    context.merge_call(met, (condition, *arguments))
