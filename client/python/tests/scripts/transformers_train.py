"""A training with the Trainer of Transformers."""

import os
import tempfile

import torch
import transformers
from cohabit.integrations.transformers import CohabitCallback
from hold import hold

# In the middle of an epoch, version 4 goes on with another order of the data, also without Cohabit.
HELD = 9 if int(transformers.__version__.split(".")[0]) >= 5 else 12


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.1), torch.nn.Linear(8, 1))

    def forward(self, inputs, labels=None):
        predicted = self.layers(inputs).squeeze(-1)
        return {"loss": torch.nn.functional.mse_loss(predicted, labels), "logits": predicted}


class Holding(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        if state.global_step == HELD:
            hold()


transformers.set_seed(1)
inputs = torch.randn(48, 4)
rows = [{"inputs": row, "labels": row.sum()} for row in inputs]
output = tempfile.mkdtemp()
arguments = transformers.TrainingArguments(
    output_dir=output,
    num_train_epochs=4,
    per_device_train_batch_size=8,
    logging_steps=1,
    report_to=[],
    save_strategy="no",
    use_cpu=True,
    disable_tqdm=True,
    learning_rate=0.01,
    seed=1,
)
callback = CohabitCallback()
trainer = transformers.Trainer(
    model=Network(), args=arguments, train_dataset=rows, callbacks=[Holding(), callback]
)
trainer.train(resume_from_checkpoint=callback.latest())
assert arguments.output_dir == output and os.listdir(output) == [], os.listdir(output)
losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
with torch.no_grad():
    trainer.model.eval()
    print(f"final loss {losses[-1]!r} {trainer.model(inputs, inputs.sum(dim=1))['loss'].item()!r}")
