"""The sample configuration and the unit file are valid, and documents have the defaults."""

import pathlib
import re
import shutil
import tempfile
import unittest

from harness import BINARY, ROOT, run

SAMPLE = ROOT / "deploy/tapline.conf"
UNIT = ROOT / "deploy/tapline.service"


class Sample(unittest.TestCase):
    def test_sample_as_it_is_passes_the_check(self):
        run(BINARY, "serve", "--config", str(SAMPLE), "--data-dir", "/nonexistent/tapline",
            "--check-config")

    def test_unknown_setting_fails_the_check(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write("spool.byte_max = 1GiB\n")
            file.flush()
            outcome = run(BINARY, "serve", "--config", file.name, "--check-config", check=False)
        self.assertEqual(outcome.returncode, 2)
        self.assertIn("spool.byte_max", outcome.stderr.decode())


class Defaults(unittest.TestCase):
    def test_http_document_has_the_defaults(self):
        text = run(BINARY, "serve", "--print-config").stdout.decode()
        defaults = dict(re.findall(r"^([a-z_.]+) = (\S+)", text, re.MULTILINE))
        rows = re.findall(
            r"\| `([a-z_.]+)` \| `(\S+)` \|", (ROOT / "docs/http.md").read_text())
        self.assertGreater(len(rows), 8)
        for key, value in rows:
            self.assertEqual(defaults[key], value, key)


class Unit(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze")
    def test_unit_file_is_valid_and_hardened(self):
        text = UNIT.read_text().replace("/usr/local/bin/tapline", str(pathlib.Path(BINARY)))
        text = re.sub(r"^Documentation=.*\n", "", text, flags=re.MULTILINE)
        with tempfile.TemporaryDirectory() as directory:
            unit = pathlib.Path(directory) / "tapline.service"
            unit.write_text(text)
            outcome = run("systemd-analyze", "verify", str(unit), check=False)
            self.assertEqual((outcome.returncode, outcome.stderr.decode()), (0, ""))
            run("systemd-analyze", "security", "--offline=yes", "--threshold=25", str(unit))


if __name__ == "__main__":
    unittest.main()
