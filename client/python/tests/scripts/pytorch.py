"""A training with PyTorch."""

import cohabit  # isort: skip

import torch
from hold import hold

STEPS, HELD = 60, 35

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
inputs = torch.randn(64, 4)
targets = inputs.sum(dim=1, keepdim=True)

with cohabit.job() as job:
    state = job.load()
    if state is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    for step in job.track(range(job.start, STEPS)):
        if step == HELD:
            hold()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        job.log(loss=loss)
        if job.should_checkpoint(every="10m"):
            job.save(step, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})

print(f"final loss {loss.item()!r}")
