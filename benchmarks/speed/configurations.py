"""The sizes that are measured, and their arithmetic."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Configuration:
    """An encoder and a decoder of `layers` LSTMs of `units` units each.

    The embeddings are as wide as the layers. `source_length` and
    `target_length` are those of data without padding.
    """

    layers: int
    units: int
    vocabulary_size: int
    batch_size: int
    source_length: int
    target_length: int

    def training_flops(self, shape):
        """Operations of the matrix products of one training step.

        Two for each multiply-add; a backward pass counts as two forward
        passes.

        Args:
            shape: (B, S, T), padding included.
        """
        batch, source, target = shape
        units, layers = self.units, self.layers
        square = 2 * units * units
        encoder = layers * 8 * square
        # 4 gates of [embedding; fed vector; h], then of [x; h] above it; the
        # general score's product and the two of eq. 5.
        decoder = (8 * layers + 4) * square + 3 * square
        attention = 4 * source * units
        output = 2 * units * self.vocabulary_size
        forward = source * encoder + target * (decoder + attention + output)
        return 3 * batch * forward


CONFIGURATIONS = {
    "tiny": Configuration(2, 32, 200, 4, 6, 5),
    "small": Configuration(2, 256, 8000, 64, 20, 20),
    "medium": Configuration(2, 512, 16_000, 64, 30, 30),
    "paper": Configuration(4, 1000, 50_000, 128, 25, 25),
}
