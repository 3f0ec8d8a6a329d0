"""tutti from Python: a module or a recipe is trained by the program in a child process."""
from tutti._program import Error, RecipeError, RunFailed

__all__ = ["Error", "RecipeError", "RunFailed"]
