"""What the settings of a run must be, alone and together."""


def check_at_least_one(config, *names: str) -> None:
    """Raises where one of these settings is below 1; None may stand there."""
    for name in names:
        number = getattr(config, name)
        if number is not None and number < 1:
            raise ValueError(
                f"{name} must be at least 1. Received: {name}={number}."
            )


def check_share(config, name: str) -> None:
    """Raises where this setting is no share, or all of it."""
    share = getattr(config, name)
    if not 0 <= share < 1:
        raise ValueError(
            f"{name} must be at least 0 and less than 1. Received: "
            f"{name}={share}."
        )


def check_shared_embeddings(model) -> None:
    """Raises where there cannot be one embedding for both sides."""
    if not model.shared_embeddings:
        return
    if model.source_features is not None:
        raise ValueError(
            "shared_embeddings=true wants words on both sides. Received: "
            f"source_features={model.source_features}. Set one of them to "
            "its default."
        )
    sizes = (model.source_vocabulary_size, model.target_vocabulary_size)
    if sizes[0] != sizes[1]:
        raise ValueError(
            "shared_embeddings=true means one vocabulary, so both sizes must "
            f"be equal. Received: {sizes[0]} and {sizes[1]}."
        )


def check_averages(training) -> None:
    """Raises where the weights that a run writes contradict each other."""
    if training.keep < 0:
        raise ValueError(
            "keep is a number of epochs, 0 for none. Received: "
            f"keep={training.keep}."
        )
    decay = training.average_decay
    if decay is not None and not 0 < decay < 1:
        raise ValueError(
            "average_decay must be greater than 0 and less than 1, such as "
            f"0.999. Received: average_decay={decay}."
        )
    if training.averaged == "best" and training.average_epochs is None:
        raise ValueError(
            "averaged='best' says which epochs average_epochs counts. "
            "Expected: average_epochs, such as 5. Received: "
            "average_epochs=None."
        )
    needed = {
        "average": "average_epochs",
        "exponential": "average_decay",
    }.get(training.final_weights)
    if needed is not None and getattr(training, needed) is None:
        raise ValueError(
            f"final_weights={training.final_weights!r} needs {needed}, which "
            f"writes these weights. Received: {needed}=None."
        )


def check_text(data) -> None:
    """Raises where the sources of the text contradict each other."""
    weights = data.weights
    if weights is None:
        return
    if min(weights, default=0) <= 0:
        raise ValueError(
            "weights are positive numbers, one for each source of train. "
            f"Received: weights={list(weights)}."
        )
    count = 1 if isinstance(data.train, str | None) else len(data.train)
    if len(weights) != count:
        raise ValueError(
            "weights must be as many as the sources of train. Received: "
            f"{len(weights)} weights and train={data.train!r}."
        )
    if data.batching == "authors":
        raise ValueError(
            "batching='authors' takes the lines in their order, so no source "
            "can come more often. Received: weights with it. Leave one out."
        )


def check_two_passes(model, training) -> None:
    """Raises where the two passes of a sentence would be the same."""
    drops = (model.dropout, model.attention.dropout, model.word_dropout)
    if training.r_drop and not any(drops):
        raise ValueError(
            "r_drop compares two passes with other dropout each. Received: "
            f"r_drop={training.r_drop} and dropout=0. Set model.dropout, or "
            "r_drop=0."
        )
