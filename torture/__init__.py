"""The hostile test: kills, full disks, damage and nonsense, and what must survive them.

`python -m torture` runs it; one module per kind of attack. `arena` is what they share, `faults`
what is put into the processes under attack. Nothing of it is part of the product.
"""
