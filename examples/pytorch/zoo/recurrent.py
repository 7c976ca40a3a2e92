"""Recurrent networks: a language model of LSTM cells, and a speech recogniser of GRU cells."""

import torch
from torch import nn

from .task import Task, classes_of


class WordLanguage(Task):
    """Predicts the next word, like the medium model of Zaremba et al. 2014 (arXiv 1409.2329)."""

    WORDS, LENGTH, WIDTH, LAYERS = 10_000, 35, 650, 2

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(self.WORDS, self.WIDTH)
        self.recurrent = nn.LSTM(self.WIDTH, self.WIDTH, self.LAYERS, batch_first=True, dropout=0.5)
        self.dropout = nn.Dropout(0.5)
        self.output = nn.Linear(self.WIDTH, self.WORDS)

    def batch(self, size, generator):
        return (classes_of(size, self.WORDS, generator, (self.LENGTH + 1,)),)

    def loss(self, words):
        states, _ = self.recurrent(self.dropout(self.embedding(words[:, :-1])))
        scores = self.output(self.dropout(states))
        return nn.functional.cross_entropy(scores.flatten(0, 1), words[:, 1:].flatten())


class SpeechSounds(Task):
    """Classifies the sound in each frame of a spectrogram, like a small Deep Speech 2 (arXiv 1512.02595)."""

    BANDS, FRAMES, SOUNDS, WIDTH, LAYERS = 80, 200, 64, 512, 3

    def __init__(self):
        super().__init__()
        self.listen = nn.Sequential(
            nn.Conv1d(self.BANDS, self.WIDTH, 11, stride=2, padding=5, bias=False),
            nn.BatchNorm1d(self.WIDTH),
            nn.ReLU(inplace=True),
        )
        self.recurrent = nn.GRU(self.WIDTH, self.WIDTH, self.LAYERS, batch_first=True, bidirectional=True)
        self.output = nn.Linear(2 * self.WIDTH, self.SOUNDS)

    def batch(self, size, generator):
        spectrograms = torch.randn(size, self.BANDS, self.FRAMES, generator=generator)
        return spectrograms, classes_of(size, self.SOUNDS, generator, (self.FRAMES // 2,))

    def loss(self, spectrograms, sounds):
        states, _ = self.recurrent(self.listen(spectrograms).transpose(1, 2))
        return nn.functional.cross_entropy(self.output(states).flatten(0, 1), sounds.flatten())
