"""Recommender models: large embedding tables, of which each sample uses a few rows.

DLRM (Naumov et al. 2019, arXiv 1906.00091) and neural collaborative filtering (He et al. 2017,
arXiv 1708.05031). They are limited by memory rather than by arithmetic.
"""

import itertools

import torch
from torch import nn

from .task import Task, classes_of


def dense(widths):
    layers = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def sparse_table(rows, width):
    """An embedding table with sparse gradients, which contain only the rows that were used."""
    table = nn.EmbeddingBag(rows, width, mode="sum", sparse=True)
    nn.init.uniform_(table.weight, -(rows**-0.5), rows**-0.5)
    return table


class ClickRate(Task):
    """Predicts clicks from numeric features and from categories with a table each."""

    learning_rate = 0.1
    NUMBERS, TABLES, ROWS, WIDTH = 13, 26, 100_000, 64

    def __init__(self):
        super().__init__()
        self.bottom = dense([self.NUMBERS, 512, 256, self.WIDTH])
        self.tables = nn.ModuleList(sparse_table(self.ROWS, self.WIDTH) for _ in range(self.TABLES))
        vectors = self.TABLES + 1
        self.register_buffer("pairs", torch.tril_indices(vectors, vectors, offset=-1), persistent=False)
        self.top = dense([self.WIDTH + vectors * (vectors - 1) // 2, 512, 256])
        self.output = nn.Linear(256, 1)

    def batch(self, size, generator):
        numbers = torch.rand(size, self.NUMBERS, generator=generator)
        clicks = classes_of(size, 2, generator).float()
        return numbers, classes_of(size, self.ROWS, generator, (self.TABLES,)), clicks

    def loss(self, numbers, categories, clicks):
        number = self.bottom(numbers)
        looked_up = [table(categories[:, at, None]) for at, table in enumerate(self.tables)]
        vectors = torch.stack([number, *looked_up], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        crossed = products[:, self.pairs[0], self.pairs[1]]
        scores = self.output(self.top(torch.cat([number, crossed], dim=1)))
        return nn.functional.binary_cross_entropy_with_logits(scores[:, 0], clicks)

    def optimizer(self, part):
        return torch.optim.SGD(part.parameters(), self.learning_rate)  # Takes sparse gradients as they are.


class Preference(Task):
    """Predicts whether a user likes an item, with a product of their vectors and a dense network."""

    USERS, ITEMS, FACTORS, WIDTH = 138_493, 26_744, 64, 128

    def __init__(self):
        super().__init__()
        self.user_factors = nn.Embedding(self.USERS, self.FACTORS)
        self.item_factors = nn.Embedding(self.ITEMS, self.FACTORS)
        self.user_vectors = nn.Embedding(self.USERS, self.WIDTH)
        self.item_vectors = nn.Embedding(self.ITEMS, self.WIDTH)
        self.dense = dense([2 * self.WIDTH, 256, 128, 64])
        self.output = nn.Linear(self.FACTORS + 64, 1)

    def batch(self, size, generator):
        liked = classes_of(size, 2, generator).float()
        return classes_of(size, self.USERS, generator), classes_of(size, self.ITEMS, generator), liked

    def loss(self, users, items, liked):
        product = self.user_factors(users) * self.item_factors(items)
        vectors = torch.cat([self.user_vectors(users), self.item_vectors(items)], dim=1)
        scores = self.output(torch.cat([product, self.dense(vectors)], dim=1))
        return nn.functional.binary_cross_entropy_with_logits(scores[:, 0], liked)
