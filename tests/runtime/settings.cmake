tutti_test(settings_test SOURCES key_check_test.cpp resolve_test.cpp setting_test.cpp DEPENDS tutti_runtime)
