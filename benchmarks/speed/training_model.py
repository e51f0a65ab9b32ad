"""The model that a run trains, without the metrics of a run."""

from luong_keras.models.translation_model import TranslationModel
from luong_keras.recipe.training import build_optimizer, translation_loss


def training_model(config, **options):
    """Build and compile the model of a `RunConfig`, with options of Keras."""
    model = TranslationModel(config.model).training_model
    model.compile(
        build_optimizer(config),
        loss={"word": translation_loss(config), "hits": None},
        **options,
    )
    return model
