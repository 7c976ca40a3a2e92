"""A transformer on image patches of 16 by 16 pixels.

ViT, small (Dosovitskiy et al. 2021, arXiv 2010.11929; Touvron et al. 2021, arXiv 2012.12877).
"""

import torch
from torch import nn

from .image_classes import CLASSES, PIXELS, ImageClasses
from .transformer import Block

PATCH = 16


class VisionTransformer(nn.Module):
    """Classifies an image with a class token that attends to the patches."""

    def __init__(self, layers, width, heads):
        super().__init__()
        self.patches = nn.Conv2d(3, width, PATCH, PATCH)
        self.summary = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.empty(1, (PIXELS // PATCH) ** 2 + 1, width))
        nn.init.normal_(self.positions, std=0.02)
        self.blocks = nn.Sequential(*(Block(width, heads, dropout=0.0) for _ in range(layers)))
        self.output = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, CLASSES))

    def forward(self, images):
        patches = self.patches(images).flatten(2).transpose(1, 2)
        summary = self.summary.expand(len(images), -1, -1)
        states = self.blocks(torch.cat([summary, patches], dim=1) + self.positions)
        return self.output(states[:, 0])


def vit_small():
    return ImageClasses(VisionTransformer(layers=12, width=384, heads=6))
