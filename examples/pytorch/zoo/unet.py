"""Segmentation: a class for each pixel, with a U-shaped network (Ronneberger et al. 2015, arXiv 1505.04597)."""

import itertools

import torch
from torch import nn

from .image_classes import convolution
from .task import Task, classes_of, images_of

WIDTHS = (64, 128, 256, 512, 1024)
PIXELS, CLASSES = 128, 21


def twice(inputs, outputs):
    return nn.Sequential(
        convolution(inputs, outputs, 3),
        nn.ReLU(inplace=True),
        convolution(outputs, outputs, 3),
        nn.ReLU(inplace=True),
    )


class Segmentation(Task):
    """Reduces the image and enlarges it again, with a skip connection at each level."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(
            twice(inputs, outputs) for inputs, outputs in itertools.pairwise((3, *WIDTHS))
        )
        self.shrink = nn.MaxPool2d(2)
        upwards = list(itertools.pairwise(reversed(WIDTHS)))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(below, beside, 2, 2) for below, beside in upwards)
        self.up = nn.ModuleList(twice(2 * beside, beside) for _, beside in upwards)
        self.output = nn.Conv2d(WIDTHS[0], CLASSES, 1)

    def batch(self, size, generator):
        return images_of(size, generator, PIXELS), classes_of(size, CLASSES, generator, (PIXELS, PIXELS))

    def loss(self, images, classes):
        levels = []
        for level in self.down:
            images = level(self.shrink(images) if levels else images)
            levels.append(images)
        levels.pop()
        for grow, level in zip(self.grow, self.up, strict=True):
            images = level(torch.cat([levels.pop(), grow(images)], dim=1))
        return nn.functional.cross_entropy(self.output(images), classes)
