"""One file per question: what it asks, which studies and pairs answer it, which claims it judges.

To add one, copy a file, change its `QUESTION`, and run `python -m showdown pages`.
"""
