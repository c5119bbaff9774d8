"""The showdown: from stores to the small files in `results/`, and from those to the pages.

python -m showdown collect STORE…    what the studies ask for, into results/
python -m showdown yardsticks        chance, the best fixed arm, a learner told everything
python -m showdown pages             docs/results/ from results/ alone
"""
