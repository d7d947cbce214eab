"""What a report knows besides events, as it is today: devices, categories, test marks.

Each is an NDJSON file:

| file | a line |
|---|---|
| devices | `{"app","device_id"}`, and of the dimensions of a device those it registered with: |
| | texts, `platform` to `push_group`, and `topics`, a list of texts |
| categories | `{"app","category_id","action_id","opens_app"}`: does the button open the app? |
| test devices | `{"app","device_id"}` |
"""
import json


class Today:
    """Tables that a report looks up when it is made."""

    def __init__(self, devices=(), categories=(), test_devices=()):
        self.devices = {(d["app"], d["device_id"]): d for d in devices}
        self.categories = {
            (c["app"], c["category_id"], c["action_id"]): c["opens_app"] for c in categories}
        self.test_devices = {(d["app"], d["device_id"]) for d in test_devices}

    def opens_app(self, action):
        """Whether the button of an `action` opens the app: rule 9."""
        if action.opens_app is not None:
            return action.opens_app
        return self.categories.get(
            (action.app, action.category_id, action.action_id)) is True

    def is_click(self, event):
        return event.type == "clicked" or event.type == "action" and self.opens_app(event)

    def of_device(self, app, device, name):
        return self.devices.get((app, device), {}).get(name)


def read(path):
    """The lines of an NDJSON file; nothing without a path."""
    if path is None:
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]
