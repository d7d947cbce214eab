"""What a person sees of the live page, in a real browser."""

import time
import unittest

from browser import Browser
from harness import Tapline, request

NDJSON = {"Content-Type": "application/x-ndjson"}


class Live(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tapline = Tapline()
        cls.addClassCleanup(cls.tapline.stop)
        cls.key = cls.tapline.key("shop")
        cls.reader = cls.tapline.key("shop", role="read")
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def send(self, campaign, received, clicked):
        lines = [
            '{"type":"%s","message_uid":"%s-%d","device_id":"d","campaign_id":"%s"}' % (
                kind, campaign, unit, campaign)
            for kind, count in (("received", received), ("clicked", clicked))
            for unit in range(count)]
        status, _, body = request(
            self.tapline.url + "/v1/events?ack=stored", "POST",
            NDJSON | {"Authorization": f"Bearer {self.key}"}, "\n".join(lines).encode())
        self.assertEqual(status, 200, body)

    def look(self):
        self.browser.open("about:blank")
        self.browser.wait("location.href === 'about:blank'")
        self.browser.open(f"{self.tapline.url}/#key={self.reader}")
        self.browser.wait("document.getElementById('board')?.hidden === false")

    def test_a_key_is_asked_for_and_forgotten(self):
        self.browser.open(self.tapline.url + "/")
        self.browser.wait("document.getElementById('ask')?.hidden === false")
        self.assertIn("needs a read or an admin key", self.browser.text())
        enter = "document.getElementById('key').value = '%s'; document.querySelector('#ask button').click()"
        self.browser.evaluate(enter % "nonsense")
        self.browser.wait("document.body.innerText.includes('the key is not known')")
        self.browser.evaluate(enter % self.key)
        self.browser.wait("document.body.innerText.includes('the key is for ingest')")
        self.browser.evaluate(enter % self.reader)
        self.browser.wait("document.getElementById('board').hidden === false")
        self.assertEqual(self.browser.evaluate("sessionStorage.length"), 1)
        self.browser.evaluate("document.getElementById('leave').click()")
        self.browser.wait("document.getElementById('board').hidden")
        self.assertEqual(self.browser.evaluate("sessionStorage.length"), 0)

    def test_numbers_campaigns_and_flags_are_there_and_change(self):
        self.send("spring", received=40, clicked=10)
        self.send("<b>autumn</b>", received=40, clicked=40)
        self.look()
        self.browser.wait("document.getElementById('campaigns').innerText.includes('autumn')")
        text = self.browser.text()
        for part in (
            "Received a second", "database is up", "the books balance", "of shop, data through",
            "25.00 %", "[14.19 40.19]", "<b>autumn</b>", "100.00 %", "all campaigns",
            "Everybody who got the message tapped it", "Wilson's 95 % interval",
        ):
            self.assertIn(part, text)
        # The key is not left in the address.
        self.assertEqual(self.browser.evaluate("location.href"), self.tapline.url + "/")
        received = "Number(document.querySelector('#verdicts dd').innerText.replace(',', ''))"
        before = self.browser.evaluate(received)
        self.send("summer", received=30, clicked=1)
        self.browser.wait("document.getElementById('campaigns').innerText.includes('summer')")
        self.browser.wait(f"{received} === {before + 31}")

    def test_it_fits_a_phone_and_has_two_colour_schemes(self):
        self.send("a-campaign-with-a-rather-long-name-" + "x" * 90, received=9, clicked=3)
        self.look()
        self.browser.wait("document.querySelectorAll('#campaigns tr').length > 1")
        pages = set()
        for width in (1280, 400):
            self.browser.size(width, 900)
            for scheme in ("light", "dark"):
                self.browser.scheme(scheme)
                time.sleep(0.1)
                self.assertEqual(
                    self.browser.evaluate("document.documentElement.scrollWidth"), width)
                pages.add(self.browser.evaluate("getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(len(pages), 2)
        self.browser.size(1280, 900)

    def test_it_says_when_the_daemon_is_gone(self):
        tapline = Tapline()
        try:
            reader = tapline.key("shop", role="read")
            self.browser.open(f"{tapline.url}/#key={reader}")
            self.browser.wait("document.getElementById('state')?.innerText === 'live'")
        finally:
            tapline.stop()
        self.browser.wait("document.getElementById('state').innerText.includes('trying again')")


if __name__ == "__main__":
    unittest.main()
