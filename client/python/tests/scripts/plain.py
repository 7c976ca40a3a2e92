"""A training without any library, in the four lines of the helper."""

import cohabit
from hold import hold

STEPS, HELD = 200, 120

with cohabit.job() as job:
    weight = job.load(default=5.0)
    for step in job.track(range(job.start, STEPS)):
        if step == HELD:
            hold()
        weight -= 0.01 * 2 * weight
        job.log(loss=weight**2)
        if job.should_checkpoint(every="10m"):
            job.save(step, weight)

print(f"final loss {weight**2!r}")
