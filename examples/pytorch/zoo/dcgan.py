"""Generative adversarial networks: a generator and a discriminator of images.

DCGAN (Radford et al. 2016, arXiv 1511.06434). A step updates both networks, one after the other.
"""

import torch
from torch import nn

from .task import Task, images_of

NOISE, WIDTH, PIXELS = 100, 64, 64


def maker():
    layers, inputs = [], NOISE
    for outputs, stride, padding in ((8 * WIDTH, 1, 0), (4 * WIDTH, 2, 1), (2 * WIDTH, 2, 1), (WIDTH, 2, 1)):
        layers += [
            nn.ConvTranspose2d(inputs, outputs, 4, stride, padding, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        ]
        inputs = outputs
    return nn.Sequential(*layers, nn.ConvTranspose2d(inputs, 3, 4, 2, 1, bias=False), nn.Tanh())


def judge():
    layers, inputs = [nn.Conv2d(3, WIDTH, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)], WIDTH
    for outputs in (2 * WIDTH, 4 * WIDTH, 8 * WIDTH):
        layers += [
            nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.LeakyReLU(0.2, inplace=True),
        ]
        inputs = outputs
    return nn.Sequential(*layers, nn.Conv2d(inputs, 1, 4, bias=False), nn.Flatten(0))


class Adversaries(Task):
    """Trains the discriminator on real and generated images, then the generator on the discriminator's output."""

    def __init__(self):
        super().__init__()
        self.maker, self.judge = maker(), judge()

    def parts(self):
        return [self.judge, self.maker]

    def optimizer(self, part):
        return torch.optim.Adam(part.parameters(), 2e-4, betas=(0.5, 0.999))

    def batch(self, size, generator):
        return images_of(size, generator, PIXELS), torch.randn(size, NOISE, 1, 1, generator=generator)

    def losses(self, images, noise):
        made = self.maker(noise)
        yield self._judged(images, 1.0) + self._judged(made.detach(), 0.0)
        yield self._judged(made, 1.0)

    def _judged(self, images, truth):
        scores = self.judge(images)
        return nn.functional.binary_cross_entropy_with_logits(scores, torch.full_like(scores, truth))
