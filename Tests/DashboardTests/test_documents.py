"""What the documents name exists: tests, codes, files."""

import re
import unittest

from harness import ROOT

SERVICE = ROOT / "Sources/Ingest"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


class Names(unittest.TestCase):
    def test_every_test_that_is_named_exists(self):
        tests = "\n".join(path.read_text() for path in (ROOT / "Tests").glob("**/*.swift"))
        named = set(re.findall(r"`([a-z][A-Za-z0-9]+)`", (ROOT / "docs/reliability.md").read_text()))
        # Words in lower case alone are fields and commands.
        named = {name for name in named if re.search("[A-Z]", name)}
        self.assertGreater(len(named), 30)
        for name in sorted(named):
            with self.subTest(name=name):
                self.assertTrue(f"func {name}(" in tests, name)

    def test_every_link_leads_somewhere(self):
        for document in DOCUMENTS:
            for target in re.findall(r"\]\(([^)#]+)", document.read_text()):
                with self.subTest(document=document.name, target=target):
                    self.assertTrue((document.parent / target).exists())

    def test_every_document_that_the_code_names_exists(self):
        for folder in ("Sources", "sql", "Tests", "deploy", "dashboards"):
            for path in (ROOT / folder).glob("**/*.*"):
                if path.suffix not in (".swift", ".sql", ".yml", ".yaml", ".conf", ".c", ".h"):
                    continue
                for name in re.findall(r"(?<![\w/])(?:docs/)?[a-z]+\.md\b", path.read_text()):
                    with self.subTest(path=path.name, name=name):
                        self.assertTrue((ROOT / name).exists())

    def test_every_anchor_is_a_heading(self):
        for document in DOCUMENTS:
            for target, anchor in re.findall(r"\]\(([^)#]*)#([^)]+)\)", document.read_text()):
                text = (document.parent / target if target else document).read_text()
                headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
                anchors = {re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-") for h in headings}
                with self.subTest(document=document.name, anchor=anchor):
                    self.assertIn(anchor, anchors)


class Codes(unittest.TestCase):
    def test_http_document_has_every_code_and_no_other(self):
        files = [
            *SERVICE.glob("Service*.swift"), *SERVICE.glob("Dialects/*.swift"),
            *(ROOT / "Sources/Web").glob("*.swift")]
        source = "\n".join(path.read_text() for path in files)
        codes = set(re.findall(r'(?:\b\d{3}|settings),\s*"([a-z_]+)"', source))
        table = (ROOT / "docs/http.md").read_text().split("## Every status")[1].split("## Limits")[0]
        named = set()
        for row in re.findall(r"^\| [\d, ]+ \| (.*?) \|", table, re.MULTILINE):
            named |= set(re.findall(r"`([a-z_]+)`", row))
        # `internal` is a defect of ours that no document should promise.
        self.assertEqual(named, codes - {"internal"})

    def test_rejection_codes_are_documented(self):
        source = (SERVICE / "DecodeRejection.swift").read_text()
        codes = set(re.findall(r'case \w+ = "(\w+)"', source))
        self.assertGreater(len(codes), 5)
        verdicts = (ROOT / "docs/events.md").read_text().split("## Verdicts of a line")[1]
        named = set()
        for row in re.findall(r"^\| (`.*?) \|", verdicts, re.MULTILINE):
            named |= set(re.findall(r"`([a-z_0-9]+)`", row))
        self.assertEqual(named, codes)
        listed = re.search(r"enum: \[(bad_json.*?)\]", (ROOT / "docs/openapi.yaml").read_text())[1]
        self.assertEqual(set(listed.split(", ")), codes)


if __name__ == "__main__":
    unittest.main()
