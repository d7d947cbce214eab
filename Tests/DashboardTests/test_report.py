"""The page of `tapline report --format html`, in a real browser, and reports while events pour in."""

import html.parser
import json
import pathlib
import threading
import unittest

from browser import Browser
from harness import BINARY, ENVIRONMENT, Tapline, request, run, until

NDJSON = {"Content-Type": "application/x-ndjson"}


class Tables(html.parser.HTMLParser):
    """The tables of a page by their captions: rows of texts."""

    def __init__(self, page):
        super().__init__()
        self.found, self.rows, self.text = {}, None, None
        self.feed(page)

    def handle_starttag(self, tag, _):
        if tag == "table":
            self.rows = []
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("caption", "th", "td"):
            self.text = ""

    def handle_endtag(self, tag):
        if tag == "caption":
            self.found[self.text] = self.rows
        elif tag in ("th", "td"):
            self.rows[-1].append(self.text)
        if tag in ("caption", "th", "td"):
            self.text = None

    def handle_data(self, data):
        if self.text is not None:
            self.text += data

    def column(self, caption, name):
        """Numbers of a column, without the totals."""
        rows = self.found[caption]
        place = rows[0].index(name)
        return [int(row[place].replace(",", "")) for row in rows[1:] if "all" not in row[0]]


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tapline = Tapline()
        cls.addClassCleanup(cls.tapline.stop)
        cls.tapline.send_sample(10)

    def page(self, *options):
        path = pathlib.Path(self.tapline.directory) / "report.html"
        self.tapline.command("report", "--format", "html", "--output", str(path), *options)
        return path

    def test_the_page_fits_a_screen_a_phone_and_paper_in_two_colour_schemes(self):
        browser = Browser()
        self.addCleanup(browser.close)
        path = self.page()
        browser.open(f"file://{path}")
        browser.wait("document.querySelectorAll('svg').length > 3")
        for part in ("From sent to converted", "Engagement by day", "When people tap", "spring-sale"):
            self.assertIn(part, browser.text())
        backgrounds = set()
        for width in (1280, 400):
            browser.size(width, 900)
            for scheme in ("light", "dark"):
                browser.scheme(scheme)
                browser.wait(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
                self.assertEqual(
                    browser.evaluate("document.documentElement.scrollWidth"), width)
                backgrounds.add(
                    browser.evaluate("getComputedStyle(document.body).backgroundColor"))
                # No plot is wider than the page, nor so narrow that nobody can read it.
                widths = browser.evaluate(
                    "[...document.querySelectorAll('svg')].filter(s => !s.parentElement.closest('svg'))"
                    ".map(s => s.getBoundingClientRect().width)")
                self.assertTrue(all(width * 0.25 <= one <= width for one in widths), widths)
        self.assertEqual(len(backgrounds), 2)
        # Nothing comes from a network, and nothing needs a script.
        self.assertEqual(browser.evaluate("performance.getEntriesByType('resource').length"), 0)
        self.assertEqual(browser.evaluate("document.scripts.length"), 0)
        pdf = browser.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
        self.assertGreater(len(pdf), 50_000)

    def test_a_report_is_of_one_snapshot_while_events_pour_in(self):
        key, stop, sent, failures = self.tapline.key("flood"), threading.Event(), [], []

        def pour():
            try:
                while not stop.is_set():
                    first = len(sent) * 50
                    lines = [
                        '{"type":"%s","message_uid":"m%d","device_id":"d","campaign_id":"c%d"}' % (
                            kind, unit, unit % 7)
                        for unit in range(first, first + 50) for kind in ("received", "clicked")]
                    status, _, body = request(
                        self.tapline.url + "/v1/events?ack=stored", "POST",
                        NDJSON | {"Authorization": f"Bearer {key}"}, "\n".join(lines).encode())
                    assert status == 200, body
                    sent.append(first)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=pour)
        thread.start()
        self.addCleanup(lambda: (stop.set(), thread.join()))
        seen = set()

        def grown():
            self.assertFalse(failures, failures)
            tables = Tables(self.page("--app", "flood").read_text())
            funnel = {row[0]: row[1] for row in tables.found["The funnel"]}
            delivered, clicked = (int(funnel[name].replace(",", "")) for name in ("delivered", "clicked"))
            # Both events of a message are stored together, so any one snapshot has as many of both.
            self.assertEqual(delivered, clicked)
            self.assertEqual(delivered % 50, 0)
            by_time = next(name for name in tables.found if name.startswith("Delivered and clicked by "))
            for caption in (by_time, "Click-through by campaign"):
                self.assertEqual(sum(tables.column(caption, "delivered")), delivered)
                self.assertEqual(sum(tables.column(caption, "clicked")), clicked)
            seen.add(delivered)
            report = json.loads(self.tapline.command(
                "report", "--app", "flood", "--format", "json", "--by", "campaign,hour"))
            for name in ("delivered", "clicked", "clicks_total"):
                self.assertEqual(sum(row[name] for row in report["campaigns"]), report["totals"][name])
            self.assertEqual(report["totals"]["delivered"], report["totals"]["clicked"])
            seen.add(report["totals"]["delivered"])
            return True if len(seen) >= 10 else None

        until("the app is known", lambda: sent or failures or None)
        until("ten different states were seen", grown, seconds=120)

    def test_a_table_has_colours_on_a_terminal_only(self):
        command = f"{BINARY} report --data-dir {self.tapline.data} --top 3"
        terminal = {name: text for name, text in ENVIRONMENT.items() if name != "NO_COLOR"}
        terminal |= {"TERM": "xterm-256color"}
        shown = run("script", "-qec", command, "/dev/null", environment=terminal).stdout
        self.assertIn(b"\x1b[", shown)
        for environment, how in ((terminal, command), (ENVIRONMENT, f"script -qec '{command}' /dev/null")):
            piped = run("bash", "-c", f"{how} | cat", environment=environment).stdout
            self.assertNotIn(b"\x1b[", piped)
            self.assertIn(b"delivered", piped.lower())


if __name__ == "__main__":
    unittest.main()
