"""Models that the authors' weight layout cannot represent.

Models that it can represent are compared with the authors' numbers in
`tests/golden`.
"""

import pytest

from luong_keras.config import AttentionConfig
from luong_keras.interop import authors_weights
from luong_keras.models.translation_model import TranslationModel
from tests.layer_checks import small_config

pytestmark = pytest.mark.tensorflow

TIED = "Received: tied_embeddings=True"


def model(**changes):
    settings = {"embedding_size": 6, "use_bias": False, **changes}
    return TranslationModel(small_config(**settings))


def test_model_like_the_authors_has_weights():
    weights = authors_weights(model())
    assert weights["W_emb_src"].shape == weights["W_emb_tgt"].shape == (9, 6)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"use_bias": True}, "no weights of this kind.*Set use_bias"),
        ({"source_features": 3}, "Received: a model with `source_features`"),
        ({"shared_embeddings": True}, "Received: shared_embeddings=True"),
        ({"tied_embeddings": True}, TIED),
        ({"tied_embeddings": True, "embedding_size": 3}, TIED),
        (
            {"attention": AttentionConfig("global", "concat")},
            "Received: concat_form=None",
        ),
        (
            {"attention": AttentionConfig("global", "cosine")},
            "dot, general, concat and location.*score_mode='cosine'",
        ),
    ],
)
def test_settings_without_an_equivalent_are_refused(changes, message):
    translation_model = model(**changes)
    with pytest.raises(ValueError, match=message):
        authors_weights(translation_model)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
def test_quantized_and_lora_models_are_refused():
    quantized, adapted = model(), model()
    quantized.model.quantize("int8")
    adapted.target_embedding.enable_lora(2)
    for each in quantized, adapted:
        with pytest.raises(ValueError, match="not quantized and has no LoRA"):
            authors_weights(each)
