"""Transformer decoders that predict the next token, like GPT-2 (Radford et al. 2019)."""

from torch import nn

from .task import Task, classes_of
from .transformer import Block, TokenEmbedding


class NextToken(Task):
    """Predicts each next token of a sequence from the tokens before it."""

    def __init__(self, vocabulary, length, longest, layers, width, heads):
        super().__init__()
        self.vocabulary, self.length = vocabulary, length
        self.embedding = TokenEmbedding(vocabulary, longest, width)
        self.enter = nn.Dropout(0.1)
        self.blocks = nn.Sequential(*(Block(width, heads, causal=True) for _ in range(layers)))
        self.leave = nn.LayerNorm(width)
        self.output = nn.Linear(width, vocabulary, bias=False)
        self.output.weight = self.embedding.tokens.weight

    def batch(self, size, generator):
        return (classes_of(size, self.vocabulary, generator, (self.length + 1,)),)

    def loss(self, tokens):
        states = self.leave(self.blocks(self.enter(self.embedding(tokens[:, :-1]))))
        return nn.functional.cross_entropy(self.output(states).flatten(0, 1), tokens[:, 1:].flatten())


def gpt_mini():
    return NextToken(vocabulary=8192, length=256, longest=256, layers=6, width=384, heads=6)


def gpt_small():
    return NextToken(vocabulary=50_257, length=512, longest=1024, layers=12, width=768, heads=12)
