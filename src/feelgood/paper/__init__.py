"""The paper: its published numbers, the settings that go with them, and what to run for each.

It may import `studies` and what lies below.
"""
