"""Peer Joey NMT, with its trainer, batches and model."""

import itertools
from types import SimpleNamespace

import torch
from joeynmt import training as joeynmt_training
from joeynmt.batch import Batch
from joeynmt.config import load_config
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary

from speed.batches import EOS_ID, read_sentences
from speed.configurations import CONFIGURATIONS
from speed.joeynmt_config import model_config
from speed.paced import Paced
from speed.worker import Work


def epoch(config_file):
    """Return training by the real package, from a configuration file."""
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


def translating(configuration, sentences_file, beam_size):
    """Translate one sentence per step, with as many symbols as ours."""
    torch.manual_seed(0)
    size = CONFIGURATIONS[configuration]
    model = build_model(model_config(size), *[vocabulary(size)] * 2).eval()
    sentences = itertools.cycle(read_sentences(sentences_file))

    def run(steps):
        words = 0
        for ids in itertools.islice(sentences, steps):
            # Unlike ours, its encoder needs a `</s>` at the end of the source.
            source = torch.tensor([[*ids, EOS_ID]])
            batch = Batch(
                src=source,
                src_length=torch.tensor([source.shape[1]]),
                src_prompt_mask=None,
                trg=None,
                trg_prompt_mask=None,
                indices=torch.arange(1),
                device=torch.device("cpu"),
                pad_index=model.pad_index,
                eos_index=EOS_ID,
                is_train=False,
            )
            found, *_ = search(
                model,
                batch,
                max_output_length=len(ids) + 1,
                min_output_length=len(ids),
                beam_size=beam_size,
                beam_alpha=0.0,
            )
            length = len(found[0])
            if not 0 <= length - len(ids) <= 1:
                raise ValueError(f"{length} words for {len(ids)}")
            words += len(ids) + 1
        return {"words": words}

    return Work(run, sum(p.numel() for p in model.parameters()))


def vocabulary(size):
    """Return a vocabulary of words `w<id>`, with Joey NMT's special tokens."""
    special = SimpleNamespace(
        unk_token="<unk>",
        unk_id=0,
        pad_token="<pad>",
        pad_id=1,
        bos_token="<s>",
        bos_id=2,
        eos_token="</s>",
        eos_id=EOS_ID,
        sep_token=None,
        lang_tags=[],
    )
    words = [f"w{i}" for i in range(EOS_ID + 1, size.vocabulary_size)]
    return Vocabulary(words, special)
