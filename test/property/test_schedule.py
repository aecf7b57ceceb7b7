"""The schedule against torch.profiler's own. Arguments: the driver, a seed. Exits 1 on the first difference."""

import itertools
import random
import subprocess
import sys
import warnings
from functools import partial
from unittest import mock

import torch
from torch.profiler import ProfilerAction, ProfilerActivity, profile, schedule

KEYS = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
LETTERS = {"prepare_trace": "p", "start_trace": "s", "stop_trace": "e", "_trace_ready": "r"}
STEPS = 200
# PyTorch before 2.13 has no DEVICE_STOPPED.
ACTIONS = [a for a in ("NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "DEVICE_STOPPED") if hasattr(ProfilerAction, a)]
HAS_STOPPED = "DEVICE_STOPPED" in ACTIONS
EXIT = 5


def ask(driver, questions):
    done = subprocess.run([driver], input="".join(q + "\n" for q in questions), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{driver}: {done.stderr}")
    answers = done.stdout.splitlines()
    if len(answers) != len(questions):
        sys.exit(f"{driver} answered {len(answers)} of {len(questions)} questions")
    return answers


def compare(what, questions, answers, expected):
    for question, answer, right in zip(questions, answers, expected, strict=True):
        if answer != right:
            sys.exit(f"{what}: {question}\n  torch {right!r}\n  ours  {answer!r}")
    print(f"{what}: {len(questions)} alike")


def random_setting(rng, most=7):
    setting = {key: rng.randint(0, most) for key in KEYS}
    setting["active"] = rng.randint(1, most)
    setting["skip_first_wait"] = rng.randint(0, 2)
    return setting


def text_of(setting):
    return ",".join(f"{key}={value}" for key, value in setting.items())


def check_actions(driver, rng):
    settings = [random_setting(rng, rng.choice((1, 3, 7, 40))) for _ in range(10000)]
    questions = [f"actions {text_of(s)} {STEPS}" for s in settings]
    expected = []
    for setting in settings:
        ask_torch = schedule(**setting)
        actions = "".join(str(ask_torch(step).value) for step in range(STEPS))
        # With no repeat a cycle always follows; else ask torch far enough out to see every cycle there is.
        end = setting["skip_first"] + setting["repeat"] * sum(setting[key] for key in KEYS[:3])
        last = max((step for step in range(end) if ask_torch(step).value), default=-1) if setting["repeat"] else STEPS
        expected.append(f"{actions} {min(last + 1, STEPS)}")
    compare("actions of 200 steps", questions, ask(driver, questions), expected)


def check_transitions(driver):
    table = profile(activities=[ProfilerActivity.CPU]).action_map
    questions, expected = [], []
    for (p, previous), (c, current) in itertools.product(enumerate(ACTIONS), [*enumerate(ACTIONS), (EXIT, None)]):
        letters, warning = "", ""
        for step in table.get((ProfilerAction[previous], ProfilerAction[current] if current else None), []):
            if not isinstance(step, partial):
                letters += LETTERS[step.__name__]
            elif step.func is warnings.warn:
                warning = step.args[0]
            else:
                try:
                    step()
                except RuntimeError as unreachable:
                    warning = str(unreachable)
        questions.append(f"transition {p} {c}")
        expected.append(f"{letters} {warning}")
    if len(table) > len(questions):
        sys.exit(f"torch's table has {len(table)} rows")
    compare("transitions", questions, ask(driver, questions), expected)


class Recorded(profile):
    """torch's profiler with its four actions noted instead of done."""

    def __init__(self, **arguments):
        self.done = ""
        super().__init__(activities=[ProfilerActivity.CPU], on_trace_ready=lambda _: self.note("r"), **arguments)

    def note(self, letter):
        self.done += letter

    def prepare_trace(self):
        self.note("p")

    def start_trace(self):
        self.note("s")

    def stop_trace(self):
        self.note("e")


def run_torch(setting, stopped):
    profiler = Recorded(schedule=schedule(**setting))
    if "1" in stopped:
        profiler.use_device = "cuda"
    profiler.start()
    for device_stopped in stopped:
        profiler.note(" ")
        with mock.patch("torch.autograd._is_kineto_stopped", lambda: device_stopped == "1", create=True):
            profiler.step()
    profiler.note(" ")
    profiler.stop()
    return profiler.done


def check_runs(driver, rng):
    questions, expected = [], []
    for i in range(600):
        setting = random_setting(rng, 4)
        chance = 0.15 if HAS_STOPPED and i % 2 else 0
        stopped = "".join("1" if rng.random() < chance else "0" for _ in range(rng.randint(1, 40)))
        questions.append(f"run {text_of(setting)} {stopped}")
        expected.append(run_torch(setting, stopped))
    compare("whole runs of torch.profiler.profile", questions, ask(driver, questions), expected)


def main():
    driver, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    warnings.simplefilter("ignore")
    print(f"torch {torch.__version__}, seed {seed}")
    check_transitions(driver)
    check_actions(driver, random.Random(seed))
    check_runs(driver, random.Random(seed))


main()
