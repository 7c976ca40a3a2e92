"""Image classification: images of 224 by 224 pixels and a thousand classes."""

import torch
from torch import nn

from .task import Task, classes_of, images_of

CLASSES, PIXELS = 1000, 224


class ImageClasses(Task):
    """Trains a network that computes a score for each class of an image."""

    learning_rate = 0.01

    def __init__(self, network):
        super().__init__()
        self.network = network

    def batch(self, size, generator):
        return images_of(size, generator, PIXELS), classes_of(size, CLASSES, generator)

    def loss(self, images, classes):
        return nn.functional.cross_entropy(self.network(images), classes)

    def optimizer(self, part):
        return torch.optim.SGD(part.parameters(), self.learning_rate, momentum=0.9, weight_decay=1e-4)


def convolution(inputs, outputs, kernel, stride=1, groups=1):
    """A convolution, padded to keep the image size except for its stride, followed by a normalisation."""
    layer = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs))
