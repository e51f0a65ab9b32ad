"""The peer Joey NMT: its own trainer, batches and model."""

from joeynmt import training as joeynmt_training
from joeynmt.config import load_config

from speed.paced import Paced
from speed.worker import Work


def epoch(config_file):
    """Training by the real package, from a configuration file."""
    words, parameters = [0], []

    def train(before_step):
        class PacedManager(joeynmt_training.TrainManager):
            def _train_step(self, batch):
                if not parameters:
                    sizes = (p.numel() for p in self.model.parameters())
                    parameters.append(sum(sizes))
                before_step()
                words[0] += int(batch.ntokens)
                return super()._train_step(batch)

        joeynmt_training.TrainManager = PacedManager
        config = load_config(config_file)
        joeynmt_training.train(0, 1, config, skip_test=True)

    paced = Paced(train)

    def run(steps):
        words[0] = 0
        paced.run(steps)
        return {"words": words[0]}

    return Work(run, parameters[0])
