"""What a model answers to the prompts of the demo, recorded anew once prompts change.

    python -m evals demo --ask FOLDER

Whoever has read neither prompts nor code answers them in the folder, as a large language model would; what is recorded
already is not asked again, and answers that no prompt asks for any more go.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from evals._handoff import Answers, Prompt
from remegraph import MemoryKit, Settings
from remegraph.demo import ANSWERS, answers, key, model, play
from remegraph.testing import Answer, ModelCall

__all__ = ["main"]


def main() -> None:
    """Play the demo, have what is new answered, and write down all that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m evals demo", description="Recorded answers of the demo.")
    parser.add_argument("--ask", type=Path, required=True, help="Folder where prompts wait for their answers.")
    folder: Path = parser.parse_args().ask
    handed = Answers(folder / "handed.jsonl", folder, wait=True)
    asked: dict[str, Answer] = {}

    def step(call: ModelCall) -> Answer:
        known = answers().get(key(call))
        asked[key(call)] = known or handed.exact(Prompt(call.messages, call.instructions))["args"]
        return asked[key(call)]

    with TemporaryDirectory() as home:
        kit = MemoryKit.open(settings=Settings(home=Path(home)), model=model(step), embedder=None)
        with kit:
            play(kit)
    path = Path(__file__).parents[1] / "src" / "remegraph" / "demo" / ANSWERS
    lines = [json.dumps({"key": name, "answer": asked[name]}, ensure_ascii=False) for name in sorted(asked)]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{len(asked)} answers")


if __name__ == "__main__":
    main()
