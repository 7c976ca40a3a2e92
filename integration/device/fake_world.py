"""A machine with a made-up GPU: the fakes of `integration/fakes`, found before anything real."""

import dataclasses
import os
import re
import subprocess


@dataclasses.dataclass(frozen=True)
class FakeWorld:
    """What daemons need in their environment to be fooled, and the program that stands in for a training."""

    environment: dict[str, str]
    client: str

    @staticmethod
    def made(folder, program):
        """Made by the fakes that lie beside this build of Cohabit."""
        maker = program.parent / "examples" / "fake-world"
        if not maker.exists():
            raise SystemExit(f"there is no {maker}: build it by 'cargo build -p cohabit-fakes --examples'")
        made = subprocess.run([maker, folder], capture_output=True, text=True, check=True).stdout
        exported = dict(re.findall(r"^export (\w+)=(.*)$", made, re.MULTILINE))
        exported["PATH"] = exported["PATH"].replace("$PATH", os.environ["PATH"])
        return FakeWorld(exported, re.search(r"^# a training: (\S+)", made, re.MULTILINE).group(1))
