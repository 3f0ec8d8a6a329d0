# tutti_library(folder SOURCES ... DEPENDS ...): the static library tutti_<folder>, one a folder.
function(tutti_library folder)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(tutti_${folder} STATIC ${arg_SOURCES})
  target_include_directories(tutti_${folder} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(tutti_${folder} PUBLIC ${arg_DEPENDS})
endfunction()

# tutti_test(name SOURCES ... DEPENDS ... [LABELS ...]): the executable build/tests/<name>, run by ctest as one test.
function(tutti_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_compile_definitions(${name} PRIVATE TUTTI_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TUTTI_BUILD_DIR="${CMAKE_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} GTest::gtest_main GTest::gmock)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 600)
endfunction()
