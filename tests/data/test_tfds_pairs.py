"""Pairs of TensorFlow Datasets, with its mock data."""

import pytest
import tensorflow as tf

from luong_keras.data.public_sets import tfds_pairs

tfds = pytest.importorskip("tensorflow_datasets")
EXAMPLES = [("ein Haus", "a house"), ("über", "über")]


def as_dataset(self, *args, read_config, shuffle_files, **kwargs):
    # The pairs keep the order of the files.
    assert not shuffle_files and read_config.interleave_cycle_length == 1
    first, second = self.builder_config.language_pair
    return tf.data.Dataset.from_generator(
        lambda: (
            {first: f"{first}: {german}", second: f"{second}: {english}"}
            for german, english in EXAMPLES
        ),
        output_signature={
            language: tf.TensorSpec([], tf.string)
            for language in (first, second)
        },
    )


@pytest.fixture(autouse=True)
def offline():
    with tfds.testing.mock_data(
        policy=tfds.testing.MockPolicy.USE_CODE, as_dataset_fn=as_dataset
    ):
        yield


@pytest.mark.parametrize(
    "name", ["wmt14_translate", "wmt14_translate/de-en", "wmt15_translate"]
)
def test_one_configuration_serves_both_directions(name):
    german_english = list(tfds_pairs(name, "train", "de", "en"))
    assert german_english == [
        ("de: ein Haus", "en: a house"),
        ("de: über", "en: über"),
    ]
    english_german = list(tfds_pairs(name, "train", "en", "de"))
    assert english_german == [
        (english, german) for german, english in german_english
    ]


@pytest.mark.parametrize(
    ("name", "languages", "message"),
    [
        ("wmt14_translate", ("de", "fr"), "de-en .de and en.*fr-en"),
        ("wmt14_translate/cs-en", ("de", "en"), "cs and en"),
        ("wmt14_translate/xx-en", ("de", "en"), "'de-en'.*'xx-en'"),
        ("mnist", ("de", "en"), "no translation feature"),
        ("no_such_set", ("de", "en"), "no set of this name"),
        ("huggingface:wmt14", ("de", "en"), "'huggingface:wmt14'. Sets of"),
    ],
)
def test_errors_list_what_is_available(name, languages, message):
    with pytest.raises(ValueError, match=message):
        tfds_pairs(name, "train", *languages)
