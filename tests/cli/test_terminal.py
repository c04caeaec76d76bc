"""What the program shows on a terminal: tables of its width, statuses in colour; neither in a pipe."""
import fcntl
import os
import pathlib
import pty
import struct
import subprocess
import termios
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(pathlib.Path(os.environ.get("CONVLADDER_BUILD", ROOT / "build")).resolve() / "bin/convladder")
BENCH = ("bench", "--backend", "sim", "--stage", "31,33", "--workload", "conv5 (2,96,7,7)->80 3x3")
PLAIN = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}


def shown(columns, *arguments, error=False, **environment):
    """Standard output on a terminal of that many columns, or standard error."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    streams = {"stderr": end, "stdout": subprocess.DEVNULL} if error else {"stdout": end, "stderr": subprocess.DEVNULL}
    program = subprocess.Popen([PROGRAM, *arguments], **streams,
                               env={**PLAIN, "TERM": "xterm", **environment})
    os.close(end)
    text = b""
    try:
        while block := os.read(terminal, 65536):
            text += block
    except OSError:  # so a terminal ends whose program has
        pass
    os.close(terminal)
    program.wait()
    return text.decode().replace("\r\n", "\n")


class Terminal(unittest.TestCase):
    def test_a_table_fits_the_width(self):
        text = shown(80, "list")
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        self.assertIn("cut in 80 columns: idea", text)
        text = shown(100, *BENCH)
        self.assertIn("left out in 100 columns: unique bytes, shared requests", text)
        self.assertNotIn("barriers ", text)
        self.assertIn("barriers ", shown(300, *BENCH))

    def test_columns_sets_the_width(self):
        self.assertNotIn("left out", shown(100, *BENCH, COLUMNS="300"))
        self.assertIn("left out in 90", shown(300, *BENCH, COLUMNS="90"))

    def test_colours(self):
        bench = ("bench", "--backend", "sim", "--stage", "1,25", "--shape", "w=20,s=3")
        self.assertIn("\033[2mrefused\033[0m [1]", shown(300, *bench))
        self.assertNotIn("\033", shown(300, *bench, NO_COLOR="1"))
        self.assertNotIn("\033", shown(300, *bench, TERM="dumb"))

    def test_what_remains_of_a_bench(self):
        bench = ("bench", "--backend", "sim", "--stage", "3,4", "--workload", "w=257 r=5", "--workload", "w=7 r=5")
        text = shown(100, *bench, error=True)
        for done, name in enumerate(("w=257 r=5  03", "w=257 r=5  04", "w=7 r=5  03", "w=7 r=5  04")):
            self.assertIn(f"[{done}/4] {name}", text)
        piped = subprocess.run([PROGRAM, *bench], env=PLAIN, capture_output=True, text=True).stderr
        self.assertIn("w=257 r=5  03-tiled-1d ... ok", piped)
        self.assertNotIn("[0/4]", piped)

    def test_a_pipe_gets_all(self):
        piped = subprocess.run([PROGRAM, *BENCH], env={**PLAIN, "COLUMNS": "80"}, capture_output=True, text=True).stdout
        self.assertIn("barriers ", piped)
        self.assertNotIn("left out", piped)
        self.assertNotIn("\033", piped)
