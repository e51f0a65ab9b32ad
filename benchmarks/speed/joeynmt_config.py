"""The peer Joey NMT's configuration of a model."""


def model_config(size):
    """LSTM layers, general attention and input feeding, of a `Configuration`.

    The encoder is bidirectional with half of the units each way.
    """
    layers = {
        "type": "recurrent",
        "rnn_type": "lstm",
        "embeddings": {"embedding_dim": size.units},
        "num_layers": size.layers,
        "dropout": 0.0,
    }
    return {
        "initializer": "uniform",
        "init_weight": 0.1,
        "encoder": {
            **layers,
            "hidden_size": size.units // 2,
            "bidirectional": True,
        },
        "decoder": {
            **layers,
            "hidden_size": size.units,
            "attention": "luong",
            "input_feeding": True,
            "init_hidden": "last",
        },
    }
