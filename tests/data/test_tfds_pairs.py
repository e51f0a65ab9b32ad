import pytest
import tensorflow as tf

from luong_keras.data.public_sets import tfds_pairs

tfds = pytest.importorskip("tensorflow_datasets")
SIDES = [("ein Haus", "über"), ("a house", "über")]


def as_dataset(self, *args, read_config, shuffle_files, **kwargs):
    # The pairs keep the order of the files.
    assert not shuffle_files and read_config.interleave_cycle_length == 1
    sides = zip(self.builder_config.language_pair, SIDES, strict=True)
    return tf.data.Dataset.from_tensor_slices(
        {code: [f"{code}: {text}" for text in texts] for code, texts in sides}
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
    pairs = [("de: ein Haus", "en: a house"), ("de: über", "en: über")]
    assert list(tfds_pairs(name, "train", "de", "en")) == pairs
    turned = [pair[::-1] for pair in pairs]
    assert list(tfds_pairs(name, "train", "en", "de")) == turned


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
