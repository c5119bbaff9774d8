"""What a user of Python calls. Imports every room but the command line."""
