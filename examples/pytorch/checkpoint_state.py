"""What a checkpoint of the programs here contains, and how they go on from one."""

import sys

EXIT_USAGE = 2


def state_of(model, optimizer, options):
    """What to save. `options` are those, by flag, without which the training would be another one."""
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "options": options}


def resume(job, model, optimizer, options):
    """Loads the latest checkpoint, if there is one; `job.start` is then the step to go on with."""
    state = job.load()
    if state is None:
        return
    refuse_other_options(state["options"], options, job.folder)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    if job.rank == 0:
        print(f"resumed at step {job.start}", flush=True)


def refuse_other_options(saved, present, place):
    """Ends the program if these options, by flag, are not those with which the checkpoint in `place` was saved."""
    differences = [
        f"{flag} was {saved.get(flag, 'unset')}, is now {present.get(flag, 'unset')}"
        for flag in sorted({*saved, *present})
        if saved.get(flag) != present.get(flag)
    ]
    if differences:
        print(
            f"error: the checkpoint in {place} is of a training with other options ({', '.join(differences)}): "
            "give the old options or another --checkpoint directory, or remove it",
            file=sys.stderr,
        )
        sys.exit(EXIT_USAGE)
