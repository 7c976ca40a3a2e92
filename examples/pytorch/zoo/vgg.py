"""Plain convolutional networks (VGG; Simonyan and Zisserman 2015, arXiv 1409.1556): 11 layers."""

from torch import nn

from .image_classes import CLASSES, ImageClasses

STAGES = ((64,), (128,), (256, 256), (512, 512), (512, 512))
HIDDEN = 4096


def vgg_11():
    layers, inputs = [], 3
    for widths in STAGES:
        for width in widths:
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(inplace=True)]
            inputs = width
        layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(), *dense(7 * 7 * inputs), *dense(HIDDEN), nn.Linear(HIDDEN, CLASSES)]
    task = ImageClasses(nn.Sequential(*layers))
    task.learning_rate = 0.001  # Nothing normalises between its layers.
    return task


def dense(inputs):
    return [nn.Linear(inputs, HIDDEN), nn.ReLU(inplace=True), nn.Dropout(0.5)]
