"""tutti from Python: a module or a recipe is trained by the program tutti in a child process.

    run = tutti.train(recipe, model=module, data=(x, y))    # the module has the trained weights
    run.metrics["loss"], run.predict(x), run.report()
"""
from tutti._program import Error, RecipeError, RunFailed
from tutti._run import Metrics, Run
from tutti._train import train

__all__ = ["Error", "Metrics", "RecipeError", "Run", "RunFailed", "train"]
