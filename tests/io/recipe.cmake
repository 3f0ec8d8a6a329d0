tutti_test(recipe_test SOURCES recipe_test.cpp DEPENDS tutti_recipe tutti_catalogs)
