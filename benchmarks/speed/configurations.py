"""Measured sizes of models, and their arithmetic."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Configuration:
    """An encoder and a decoder of `layers` LSTMs of `units` units each.

    The embeddings are as wide as the layers. `source_length` and
    `target_length` are the lengths of data without padding.
    """

    layers: int
    units: int
    vocabulary_size: int
    batch_size: int
    source_length: int
    target_length: int

    def training_flops(self, shape):
        """Return the operations of the matrix products of a training step.

        A multiply-add is two operations. A backward pass counts as two
        forward passes.

        Args:
            shape: (B, S, T), padding included.
        """
        batch, source, target = shape
        units, layers = self.units, self.layers
        square = 2 * units * units
        encoder = layers * 8 * square
        # 4 gates of [embedding; fed vector; h], of [x; h] in higher layers;
        # the product of the general score and the two products of eq. 5.
        decoder = (8 * layers + 4) * square + 3 * square
        attention = 4 * source * units
        output = 2 * units * self.vocabulary_size
        forward = source * encoder + target * (decoder + attention + output)
        return 3 * batch * forward

    def sequential_products(self, shape):
        """Count the products that wait for one another in a forward pass.

        Encoder layers run like a wavefront: a layer's step needs the same
        step of the layer below and its previous step. In the decoder all
        layers, the attention and eq. 5 of a step precede the next step.
        """
        _, source, target = shape
        encoder = source + self.layers - 1
        return encoder + target * (self.layers + 3)

    def recurrent_weight_reads(self, shape):
        """Count the weights that a forward pass reads at every step.

        Projections of all steps at once are not counted.
        """
        _, source, target = shape
        square = self.units * self.units
        encoder = source * self.layers * 4 * square
        return encoder + target * (8 * self.layers + 1) * square


CONFIGURATIONS = {
    "tiny": Configuration(2, 32, 200, 4, 6, 5),
    "small": Configuration(2, 256, 8000, 64, 20, 20),
    "large-batch": Configuration(2, 128, 5000, 512, 40, 40),
    "medium": Configuration(2, 512, 16_000, 64, 30, 30),
    "paper": Configuration(4, 1000, 50_000, 128, 25, 25),
}
