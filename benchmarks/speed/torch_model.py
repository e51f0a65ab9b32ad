"""Peer in PyTorch: a decoder in the style of OpenNMT-py.

A Python loop runs one module per step: embedding and fed vector pass through
stacked LSTM cells, then global "general" attention. The encoder is `nn.LSTM`.
Beam search tiles the memory, like OpenNMT-py.
"""

import contextlib
import itertools
import time

import torch
from torch import nn
from torch.nn import functional

from speed.batches import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    random_words,
    read_batches,
    read_sentences,
)
from speed.configurations import CONFIGURATIONS
from speed.worker import Work

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# On a GPU all programs may round the factors of a product to TF32.
torch.set_float32_matmul_precision("high" if DEVICE == "cuda" else "highest")


def autocast(precision):
    """Return the context that sets the precision of a step."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(DEVICE, dtype=getattr(torch, precision))


def synchronize():
    """Wait for the GPU, if there is one."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()


class GlobalAttention(nn.Module):
    """Global attention: general score, softmax, context."""

    def __init__(self, units):
        super().__init__()
        self.score = nn.Linear(units, units, bias=False)

    def forward(self, hidden, memory, mask):
        """Attend with queries (B, T, U) to memory (B, S, U) and its mask."""
        scores = torch.bmm(self.score(hidden), memory.transpose(1, 2))
        scores = scores.masked_fill(~mask.unsqueeze(1), -float("inf"))
        return torch.bmm(functional.softmax(scores, -1), memory)


class LocalAttention(GlobalAttention):
    """Local-p: a Gaussian window around a predicted position.

    `gather` reads the 2 D + 1 words of the window. Otherwise all words are
    scored and a mask keeps only the window.
    """

    def __init__(self, units, half_width=10, gather=False):
        super().__init__(units)
        self.half_width, self.gather = half_width, gather
        self.position = nn.Linear(units, units, bias=False)
        self.vector = nn.Linear(units, 1, bias=False)

    def forward(self, hidden, memory, mask):
        """Attend like `GlobalAttention`."""
        lengths = mask.sum(1)[:, None, None]
        inner = torch.tanh(self.position(hidden))
        aligned = lengths * torch.sigmoid(self.vector(inner))  # (B, T, 1)
        centre = aligned.detach().floor().long()
        query = self.score(hidden)
        if self.gather:
            return self._gathered(query, memory, lengths, aligned, centre)
        places = torch.arange(memory.shape[1], device=memory.device)
        inside = (places - centre).abs() <= self.half_width
        inside = inside & (places < lengths)
        scores = torch.bmm(query, memory.transpose(1, 2))
        weights = self._weights(scores, inside, places, aligned)
        return torch.bmm(weights.to(memory.dtype), memory)

    def _gathered(self, query, memory, lengths, aligned, centre):
        batch, length, units = memory.shape
        reach = torch.arange(
            -self.half_width, self.half_width + 1, device=memory.device
        )
        places = centre + reach  # (B, T, 2 D + 1)
        inside = (places >= 0) & (places < lengths)
        first = torch.arange(batch, device=memory.device)[:, None, None]
        rows = places.clamp(0, length - 1) + first * length
        window = memory.reshape(-1, units)[rows]
        scores = (window @ query.unsqueeze(-1)).squeeze(-1)
        weights = self._weights(scores, inside, places, aligned)
        return (weights.to(window.dtype).unsqueeze(-2) @ window).squeeze(-2)

    def _weights(self, scores, inside, places, aligned):
        scores = scores.masked_fill(~inside, -1e4)
        squares = (places - aligned) ** 2 / (2 * (self.half_width / 2) ** 2)
        return functional.softmax(scores, -1) * torch.exp(-squares)


ATTENTIONS = {"global": GlobalAttention, "local": LocalAttention}


class Decoder(nn.Module):
    """Stacked cells, attention and input feeding, one step at a time."""

    def __init__(self, layers, units, attention):
        super().__init__()
        self.cells = nn.ModuleList(
            nn.LSTMCell(2 * units if layer == 0 else units, units)
            for layer in range(layers)
        )
        self.attention = attention
        self.combine = nn.Linear(2 * units, units, bias=False)

    def step(self, embedded, fed, states, memory, mask):
        """Run one step; return h̃ and the states of all layers."""
        below, new = torch.cat([embedded, fed], 1), []
        for cell, state in zip(self.cells, states, strict=True):
            new.append(cell(below, state))
            below = new[-1][0]
        hidden = below.unsqueeze(1)
        context = self.attention(hidden, memory, mask)
        both = torch.cat([context.to(hidden.dtype), hidden], 2).squeeze(1)
        return torch.tanh(self.combine(both)), new

    def forward(self, embedded, states, memory, mask):
        """Run all steps; return (B, T, U)."""
        fed = torch.zeros_like(embedded[:, 0])
        vectors = []
        for step in embedded.unbind(1):
            fed, states = self.step(step, fed, states, memory, mask)
            vectors.append(fed)
        return torch.stack(vectors, 1)


class Translator(nn.Module):
    """Encoder, decoder and output layer."""

    def __init__(self, size, attention):
        super().__init__()
        units, words = size.units, size.vocabulary_size
        self.source_embedding = nn.Embedding(words, units, padding_idx=PAD_ID)
        self.target_embedding = nn.Embedding(words, units, padding_idx=PAD_ID)
        self.encoder = nn.LSTM(units, units, size.layers, batch_first=True)
        self.decoder = Decoder(size.layers, units, ATTENTIONS[attention](units))
        self.output = nn.Linear(units, words)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def encode(self, source, lengths=None):
        """Return the memory, its mask and the last states of every layer.

        `lengths`, on the CPU, are given if the source has padding.
        """
        embedded = self.source_embedding(source)
        if lengths is None:
            memory, (hidden, cell) = self.encoder(embedded)
        else:
            packed = nn.utils.rnn.pack_padded_sequence(
                embedded, lengths, batch_first=True, enforce_sorted=False
            )
            packed, (hidden, cell) = self.encoder(packed)
            memory, _ = nn.utils.rnn.pad_packed_sequence(
                packed, batch_first=True, total_length=source.shape[1]
            )
        states = list(zip(hidden.unbind(0), cell.unbind(0), strict=True))
        return memory, source != PAD_ID, states

    def forward(self, source, target_in, target_out, lengths=None):
        """Return the mean loss of the target words."""
        memory, mask, states = self.encode(source, lengths)
        embedded = self.target_embedding(target_in)
        vectors = self.decoder(embedded, states, memory, mask)
        logits = self.output(vectors.flatten(0, 1))
        return functional.cross_entropy(
            logits.float(), target_out.flatten(), ignore_index=PAD_ID
        )


def _on_device(batch):
    tensors = {
        name: torch.tensor(ids, dtype=torch.long, device=DEVICE)
        for name, ids in batch.items()
    }
    lengths = (batch["source"] != PAD_ID).sum(1)
    if lengths.min() < batch["source"].shape[1]:
        tensors["lengths"] = torch.tensor(lengths)
    return tensors


def training(
    configuration,
    batches,
    precision="float32",
    attention="global",
    compiled=False,
):
    """Return training steps with SGD and a clipped gradient."""
    torch.manual_seed(0)
    model = Translator(CONFIGURATIONS[configuration], attention).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = [_on_device(batch) for batch in read_batches(batches)]
    forward = torch.compile(model) if compiled else model

    def run(steps):
        for step in range(steps):
            optimizer.zero_grad()
            with autocast(precision):
                loss = forward(**data[step % len(data)])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
        return {"loss": loss.item()}

    return Work(run, sum(p.numel() for p in model.parameters()))


class BeamSearch:
    """Beam search of a fixed number of steps, in the style of OpenNMT-py."""

    def __init__(self, model, beam_size, steps):
        self.model, self.beam_size, self.steps = model, beam_size, steps

    def __call__(self, source):
        """Return the ids (B · K, T) and the scores of all hypotheses."""
        model, width = self.model, self.beam_size
        memory, mask, states = model.encode(source)
        batch = source.shape[0]
        memory, mask = (
            x.repeat_interleave(width, 0) if width > 1 else x
            for x in (memory, mask)
        )
        states = [
            tuple(part.repeat_interleave(width, 0) for part in state)
            for state in states
        ]
        fed = torch.zeros_like(states[0][0])
        ids = torch.full((batch * width, 1), BOS_ID, device=source.device)
        scores = torch.full((batch, width), -1e9, device=source.device)
        scores[:, 0] = 0.0
        first = torch.arange(batch, device=source.device)[:, None] * width
        for _ in range(self.steps):
            embedded = model.target_embedding(ids[:, -1])
            fed, states = model.decoder.step(
                embedded, fed, states, memory, mask
            )
            gains = functional.log_softmax(model.output(fed).float(), -1)
            gains[:, EOS_ID] = -1e20  # the length is not yet reached
            if width == 1:
                gain, word = gains.max(-1)
                scores = scores + gain[:, None]
                ids = torch.cat([ids, word[:, None]], 1)
                continue
            words = gains.shape[-1]
            totals = (gains + scores.view(-1, 1)).view(batch, width * words)
            scores, best = totals.topk(width, -1)
            parents = (best // words + first).view(-1)
            ids = torch.cat(
                [ids[parents], best.remainder(words).view(-1, 1)], 1
            )
            ids[:, -1].eq(EOS_ID).any()  # OpenNMT-py does this at every step
            fed = fed[parents]
            states = [tuple(p[parents] for p in state) for state in states]
        return ids[:, 1:], scores


def decoding(
    configuration,
    batch_size,
    beam_size,
    length,
    precision="float32",
    attention="global",
):
    """Return a search of `length` words for sentences of `length` words."""
    torch.manual_seed(0)
    size = CONFIGURATIONS[configuration]
    model = Translator(size, attention).to(DEVICE).eval()
    words = random_words(size, batch_size, length)
    source = torch.tensor(words, dtype=torch.long, device=DEVICE)
    search = BeamSearch(model, beam_size, length)

    @torch.inference_mode()
    def run(steps):
        for _ in range(steps):
            with autocast(precision):
                ids, scores = search(source)
            score = scores[0, 0].item()
        return {"score": score, "length": ids.shape[1]}

    return Work(run, sum(p.numel() for p in model.parameters()))


def translating(configuration, sentences_file, beam_size):
    """Translate one sentence per step, with as many symbols as ours."""
    torch.manual_seed(0)
    size = CONFIGURATIONS[configuration]
    model = Translator(size, "global").to(DEVICE).eval()
    sentences = itertools.cycle(read_sentences(sentences_file))

    @torch.inference_mode()
    def run(steps):
        words = 0
        for ids in itertools.islice(sentences, steps):
            search = BeamSearch(model, beam_size, len(ids) + 1)
            found, _ = search(torch.tensor([ids], device=DEVICE))
            words += found.shape[1]
        return {"words": words}

    return Work(run, sum(p.numel() for p in model.parameters()))


def local_attention(source_length, sizes, gather, parallel):
    """Return passes forward and backward of local-p, in a loop or at once."""
    torch.manual_seed(0)
    batch, units, steps, half_width = sizes
    attention = LocalAttention(units, half_width, gather)
    decoder = Decoder(1, units, attention)
    memory = torch.randn(batch, source_length, units, requires_grad=True)
    inputs = torch.randn(batch, steps, units, requires_grad=True)
    mask = torch.ones(batch, source_length, dtype=torch.bool)
    zeros = torch.zeros(batch, units)
    trained = attention if parallel else decoder

    def run(steps):
        for _ in range(steps):
            memory.grad = inputs.grad = None
            trained.zero_grad()
            if parallel:
                vectors = attention(inputs, memory, mask)
            else:
                vectors = decoder(inputs, [(zeros, zeros)], memory, mask)
            loss = vectors.square().sum()
            loss.backward()
        return {"loss": loss.item()}

    return Work(run)


def matrix_product(precision, width=2048):
    """Return products of two square matrices, to measure the peak rate."""
    factors = [
        torch.randn(width, width, device=DEVICE).to(getattr(torch, precision))
        for _ in range(2)
    ]

    def run(steps):
        for _ in range(steps):
            torch.matmul(*factors)
        synchronize()
        return {"flops": 2 * width**3}

    return Work(run)


def card(precision, batch_size, units):
    """Measure the peak rates of a card, for the floor of a training step.

    The results of a run are `rate`, operations per second of a product of
    large matrices; `bandwidth`, bytes per second that a copy reads and writes;
    `latency`, seconds per product in a chain of products that wait for one
    another, in a CUDA graph on a GPU.
    """
    dtype = getattr(torch, precision)
    width = 8192 if DEVICE == "cuda" else 512
    square = torch.randn(width, width, device=DEVICE).to(dtype)
    large = torch.empty(8 * width * width, device=DEVICE, dtype=dtype)
    copied = torch.empty_like(large)
    state = torch.randn(batch_size, units, device=DEVICE).to(dtype)
    # One gate's share of a layer's product, which is short.
    kernel = torch.randn(units, units, device=DEVICE).to(dtype) / units
    chain = 100

    def dependent():
        vector = state
        for _ in range(chain):
            vector = torch.matmul(vector, kernel)
        return vector

    replay = _captured(dependent)

    def seconds(function, steps):
        function()
        synchronize()
        began = time.perf_counter()
        for _ in range(steps):
            function()
        synchronize()
        return (time.perf_counter() - began) / steps

    def run(steps):
        product = seconds(lambda: torch.matmul(square, square), steps)
        copy = seconds(lambda: copied.copy_(large), steps)
        moved = 2 * large.numel() * large.element_size()
        return {
            "rate": 2 * width**3 / product,
            "bandwidth": moved / copy,
            "latency": seconds(replay, steps) / chain,
        }

    return Work(run)


def _captured(function):
    """Capture the function as a CUDA graph, to launch it without cost."""
    if DEVICE != "cuda":
        return function
    function()
    synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph.replay
