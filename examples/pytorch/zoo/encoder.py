"""Transformer encoders that predict masked tokens, like BERT (Devlin et al. 2019, arXiv 1810.04805)."""

from torch import nn

from .task import Task, classes_of
from .transformer import Block, TokenEmbedding

VOCABULARY, LONGEST, LENGTH = 30_522, 512, 128
MASK = 103
MASKED = 19  # Positions hidden in each sequence: 15 % of it.


class MaskedLanguage(Task):
    """Predicts the masked tokens of sequences."""

    learning_rate = 1e-4

    def __init__(self, layers, width, heads):
        super().__init__()
        self.embedding = TokenEmbedding(VOCABULARY, LONGEST, width)
        self.enter = nn.Sequential(nn.LayerNorm(width), nn.Dropout(0.1))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.transform = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width)
        )
        self.output = nn.Linear(width, VOCABULARY)
        self.output.weight = self.embedding.tokens.weight

    def batch(self, size, generator):
        tokens = classes_of(size, VOCABULARY, generator, (LENGTH,))
        hidden = tokens[:, :MASKED].clone()
        tokens[:, :MASKED] = MASK
        return tokens, hidden

    def loss(self, tokens, hidden):
        states = self.blocks(self.enter(self.embedding(tokens)))
        scores = self.output(self.transform(states[:, :MASKED]))
        return nn.functional.cross_entropy(scores.flatten(0, 1), hidden.flatten())


def bert_small():
    return MaskedLanguage(layers=4, width=512, heads=8)


def bert_base():
    return MaskedLanguage(layers=12, width=768, heads=12)
