"""What a user of Python calls: runs, results, comparisons, challenges, checks, data frames.

Imports every room but the command line.
"""
