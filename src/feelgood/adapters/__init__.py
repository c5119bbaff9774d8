"""Bridges to other packages, one file each; nothing of them is imported before it is used.

`coba_bridge`: our agents as learners of coba, and its environments as our testbeds.
`gymnasium_bridge`: a testbed as an environment of Gymnasium.
`tracking`: results for MLflow, Weights & Biases or a function of yours.
`python_agents`: agents in NumPy, PyTorch or anything else, outside the compiled loop.
"""
