"""Attention blocks of the encoder, the decoder and the vision transformer."""

import torch
from torch import nn


class Attention(nn.Module):
    """Multi-head attention to all positions, or only to earlier ones."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.project = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, states):
        samples, length, width = states.shape
        projected = self.project(states).view(samples, length, 3, self.heads, width // self.heads)
        query, key, value = projected.permute(2, 0, 3, 1, 4).unbind()
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        return self.output(seen.transpose(1, 2).reshape(samples, length, width))


class Block(nn.Module):
    """Attention and two dense layers, each with pre-normalisation and a residual connection."""

    def __init__(self, width, heads, causal=False, dropout=0.1):
        super().__init__()
        self.attention = nn.Sequential(
            nn.LayerNorm(width), Attention(width, heads, causal), nn.Dropout(dropout)
        )
        self.dense = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
            nn.Dropout(dropout),
        )

    def forward(self, states):
        states = states + self.attention(states)
        return states + self.dense(states)


class TokenEmbedding(nn.Module):
    """Embeddings of tokens and positions."""

    def __init__(self, vocabulary, length, width):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.empty(length, width))
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.positions, std=0.02)

    def forward(self, tokens):
        return self.tokens(tokens) + self.positions[: tokens.shape[1]]
