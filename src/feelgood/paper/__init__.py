"""The paper: settings that go with its published numbers."""

from feelgood.paper.presets import PRESETS, preset_settings

__all__ = ["PRESETS", "preset_settings"]
