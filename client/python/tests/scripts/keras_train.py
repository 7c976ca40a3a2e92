"""A training with Keras, shuffled, with dropout."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")


import keras
import numpy
from cohabit.integrations.keras import CohabitCallback
from hold import hold

HELD = 9


class Holding(keras.callbacks.Callback):
    steps = 0

    def on_train_batch_end(self, batch, logs=None):
        Holding.steps += 1
        if Holding.steps == HELD:
            hold()


keras.utils.set_random_seed(1)
inputs = numpy.random.default_rng(1).normal(size=(48, 4)).astype("float32")
targets = inputs.sum(axis=1, keepdims=True)
layers = [keras.layers.Dense(8, activation="tanh"), keras.layers.Dropout(0.1), keras.layers.Dense(1)]
model = keras.Sequential([keras.Input((4,)), *layers])
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
history = model.fit(
    inputs, targets, batch_size=8, epochs=4, verbose=0, callbacks=[Holding(), CohabitCallback()]
)
print(f"final loss {history.history['loss'][-1]!r} {model.evaluate(inputs, targets, verbose=0)!r}")
