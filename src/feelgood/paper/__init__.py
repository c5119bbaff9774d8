"""The paper: settings that go with its published numbers.

Imports studies and what is below them.
"""
