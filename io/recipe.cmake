# The recipe, apart from tutti_io: it needs no libtorch, so the thin executable can have it.
tutti_library(recipe SOURCES recipe.cpp recipe_text.cpp DEPENDS tutti_runtime PkgConfig::TOMLPLUSPLUS)
