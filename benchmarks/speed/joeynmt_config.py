"""Configurations of models and training runs for the peer Joey NMT."""


def run_config(size, model_dir, train, dev, side, training, model=None):
    """Return a training configuration with a `Configuration`'s settings.

    Args:
        size: The `Configuration`.
        model_dir: Folder of the model.
        train: Prefix of the two files of the training text.
        dev: Prefix of the two files of the validation text.
        side: Settings of both languages.
        training: Further settings of training.
        model: Settings of the model, by default `model_config(size)`.
    """
    return {
        "name": "benchmark",
        "model_dir": str(model_dir),
        "use_cuda": False,
        "data": {
            "train": str(train),
            "dev": str(dev),
            "dataset_type": "plain",
            "src": {"lang": "en", "max_length": 80, **side},
            "trg": {"lang": "de", "max_length": 80, **side},
        },
        "training": {
            "optimizer": "adam",
            "learning_rate": 0.001,
            "learning_rate_min": 0.0,
            "scheduling": "exponential",
            "decrease_factor": 1.0,  # a constant rate
            "clip_grad_norm": 1.0,
            "normalization": "tokens",
            "batch_size": size.batch_size,
            "batch_type": "sentence",
            **training,
        },
        "testing": {},
        "model": model or model_config(size),
    }


def model_config(size):
    """Return the settings of a model with a `Configuration`'s sizes.

    It has LSTM layers, general attention and input feeding. The encoder is
    bidirectional with half of the units each way.
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


def preset_model(model):
    """Return the same layers with a `ModelConfig`'s sizes and dropout."""
    layers = {
        "type": "recurrent",
        "rnn_type": "lstm",
        "embeddings": {"embedding_dim": model.embedding_size},
        "dropout": model.dropout,
    }
    return {
        "initializer": "xavier_uniform",
        "encoder": {
            **layers,
            "num_layers": model.encoder_layers,
            "hidden_size": model.units // 2,
            "bidirectional": True,
        },
        "decoder": {
            **layers,
            "num_layers": model.decoder_layers,
            "hidden_size": model.units,
            "hidden_dropout": model.dropout,
            "attention": "luong",
            "input_feeding": True,
            "init_hidden": "bridge",
        },
    }


def subword_side(model_file, folder):
    """Return the settings of a language in subwords; write their list.

    Args:
        model_file: SentencePiece model of ours.
        folder: Folder of `vocabulary.txt`.
    """
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model_file))
    # Without the first four special tokens, which Joey NMT adds.
    words = [pieces.id_to_piece(i) for i in range(4, len(pieces))]
    vocabulary = folder / "vocabulary.txt"
    vocabulary.write_text("\n".join(words) + "\n", encoding="utf-8")
    return {
        "level": "bpe",
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": str(model_file)},
        "voc_file": str(vocabulary),
    }
