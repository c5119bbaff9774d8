"""The paper: its published numbers, the settings that go with them, and what to run for each.

It may import `studies` and what lies below.
"""

from feelgood.paper.presets import PRESETS, preset_settings

__all__ = ["PRESETS", "preset_settings"]
