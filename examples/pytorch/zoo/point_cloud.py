"""Classification of point clouds with the same dense layers for each point.

PointNet without the alignment networks (Qi et al. 2017, arXiv 1612.00593).
"""

import torch
from torch import nn

from .task import Task, classes_of

POINTS, SHAPES = 1024, 40


def layer(inputs, outputs):
    return nn.Sequential(nn.Conv1d(inputs, outputs, 1), nn.BatchNorm1d(outputs), nn.ReLU(inplace=True))


class ShapeClasses(Task):
    """Takes the maximum over all points as the feature of the cloud."""

    def __init__(self):
        super().__init__()
        self.points = nn.Sequential(layer(3, 64), layer(64, 64), layer(64, 128), layer(128, 1024))
        self.whole = nn.Sequential(
            nn.Linear(1024, 512),
            nn.ReLU(inplace=True),
            nn.Linear(512, 256),
            nn.ReLU(inplace=True),
            nn.Dropout(0.3),
            nn.Linear(256, SHAPES),
        )

    def batch(self, size, generator):
        return torch.rand(size, 3, POINTS, generator=generator), classes_of(size, SHAPES, generator)

    def loss(self, clouds, shapes):
        strongest = self.points(clouds).amax(dim=2)
        return nn.functional.cross_entropy(self.whole(strongest), shapes)
