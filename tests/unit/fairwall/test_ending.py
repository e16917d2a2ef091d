"""A program ends with its status and all that it wrote, and nothing of it is taken down while threads go on."""

import subprocess
import sys

import pytest

ENDS = {
    "nothing": ("pass", 0, ""),
    "a status": ("sys.exit(2)", 2, ""),
    "a text": ("sys.exit('why')", 1, "why"),
    "an error": ("1 / 0", 1, "ZeroDivisionError"),
    "none": ("sys.exit(None)", 0, ""),
}
PROGRAM = """
import atexit, sys, threading, time
from fairwall.rpc import program
def main():
    atexit.register(print, "closed")
    threading.Thread(target=lambda: (time.sleep(0.1), print("waited for"))).start()
    print("begun", end=" ")
    {}
class Late:
    def __del__(self):
        print("taken down")
late = Late()
program.run(main)
"""


@pytest.mark.parametrize("kind", ENDS)
def test_a13_a_program_ends_as_by_the_interpreter_but_for_taking_it_down(kind: str) -> None:
    code, status, said = ENDS[kind]
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(code)], capture_output=True, text=True, check=False, timeout=60
    )
    assert finished.returncode == status
    assert finished.stdout == "begun waited for\nclosed\n"
    assert said in finished.stderr if said else not finished.stderr


def test_a_reader_that_is_gone_is_no_traceback() -> None:
    code = "from fairwall.rpc import program; program.run(lambda: print('x' * 100_000))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert b"Exception ignored" not in process.stderr.read()
        assert process.wait(60) == 1
