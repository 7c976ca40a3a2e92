"""A diffusion model (Ho et al. 2020, arXiv 2006.11239): predicts the noise that was added to an image.

A small U-shaped network of residual blocks. Each block gets the time step, which determines the noise level.
"""

import itertools
import math

import torch
from torch import nn

from .task import Task, classes_of, images_of

WIDTHS = (64, 128, 256)
PIXELS, TIME_STEPS, TIME_WIDTH, GROUPS = 32, 1000, 256, 32


def convolve(inputs, outputs):
    return nn.Sequential(nn.GroupNorm(GROUPS, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1))


class TimedBlock(nn.Module):
    """A residual block of two convolutions, with the time step added between them."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = convolve(inputs, outputs)
        self.time = nn.Sequential(nn.SiLU(), nn.Linear(TIME_WIDTH, outputs))
        self.second = convolve(outputs, outputs)
        self.shortcut = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, images, time):
        timed = self.first(images) + self.time(time)[:, :, None, None]
        return self.second(timed) + self.shortcut(images)


class Denoising(Task):
    """Adds noise of a random time step to images and predicts the noise."""

    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(
            nn.Linear(WIDTHS[0], TIME_WIDTH), nn.SiLU(), nn.Linear(TIME_WIDTH, TIME_WIDTH)
        )
        self.enter = nn.Conv2d(3, WIDTHS[0], 3, padding=1)
        pairs = list(itertools.pairwise(WIDTHS))
        self.down = nn.ModuleList(TimedBlock(above, below) for above, below in pairs)
        self.shrink = nn.ModuleList(nn.Conv2d(below, below, 3, 2, 1) for _, below in pairs)
        self.middle = TimedBlock(WIDTHS[-1], WIDTHS[-1])
        self.grow = nn.Upsample(scale_factor=2)
        self.up = nn.ModuleList(TimedBlock(2 * below, above) for above, below in reversed(pairs))
        self.leave = convolve(WIDTHS[0], 3)
        kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, TIME_STEPS), dim=0)
        self.register_buffer("kept", kept)  # How much of the image is left after each step.

    def batch(self, size, generator):
        images, noise = images_of(size, generator, PIXELS), images_of(size, generator, PIXELS)
        return images, noise, classes_of(size, TIME_STEPS, generator)

    def loss(self, images, noise, steps):
        kept = self.kept[steps][:, None, None, None]
        noisy = kept.sqrt() * images + (1 - kept).sqrt() * noise
        return nn.functional.mse_loss(self.denoise(noisy, steps), noise)

    def denoise(self, images, steps):
        time, images, levels = self.time(waves(steps)), self.enter(images), []
        for block, shrink in zip(self.down, self.shrink, strict=True):
            images = block(images, time)
            levels.append(images)
            images = shrink(images)
        images = self.middle(images, time)
        for block in self.up:
            images = block(torch.cat([levels.pop(), self.grow(images)], dim=1), time)
        return self.leave(images)


def waves(steps):
    """Encodes each time step as sines and cosines of many frequencies."""
    half = WIDTHS[0] // 2
    frequencies = torch.exp(torch.arange(half, device=steps.device) * (-math.log(10_000) / half))
    angles = steps[:, None].float() * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)
