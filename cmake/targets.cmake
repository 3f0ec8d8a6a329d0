# tutti_library(folder [COLD] SOURCES ... DEPENDS ...): the static library tutti_<folder>. All of them are
# linked into libtutti.so (binaries.cmake). COLD: the library has no loop that the speed of training hangs on,
# so it is compiled with -Og, in half the time.
function(tutti_library folder)
  cmake_parse_arguments(arg "COLD" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(tutti_${folder} STATIC ${arg_SOURCES})
  target_include_directories(tutti_${folder} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(tutti_${folder} PUBLIC ${arg_DEPENDS})
  if(arg_COLD)
    tutti_compile_cold(tutti_${folder})
    set_property(GLOBAL APPEND PROPERTY TUTTI_COLD_LIBRARIES tutti_${folder})
  else()
    tutti_precompile(tutti_${folder} tutti_precompiled)
    tutti_unite(tutti_${folder} 16)
    set_property(GLOBAL APPEND PROPERTY TUTTI_LIBRARIES tutti_${folder})
  endif()
endfunction()

# tutti_test(name [ALL_BELOW] SOURCES ... DEPENDS ... [EXCEPT ...] [LABELS ...] [SLOTS n] [RANKS n ...]
# [SHARDS n] [ALONE pattern]): the executable build/tests/<name>, which ctest runs as one test. With ALL_BELOW
# it has every *_test.cpp of the folder and below, but those of EXCEPT, beside its SOURCES. With RANKS: under
# mpirun, a test <name>.np<n> for each number of ranks. With SHARDS: split into tests <name>.1, <name>.2, ...
# that may run in parallel. SLOTS: PROCESSORS of tutti_register. Tests that match the ALONE pattern measure
# durations: they run alone, as <name>.alone.
function(tutti_test name)
  cmake_parse_arguments(arg "ALL_BELOW" "SLOTS;SHARDS;ALONE" "SOURCES;DEPENDS;EXCEPT;LABELS;RANKS" ${ARGN})
  if(arg_ALL_BELOW)
    file(GLOB_RECURSE below CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *_test.cpp)
    list(REMOVE_ITEM below ${arg_EXCEPT} "")
    list(APPEND arg_SOURCES ${below})
  endif()
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE TUTTI_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                             TUTTI_BUILD_DIR="${CMAKE_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} GTest::gtest_main GTest::gmock)
  tutti_compile_as_test(${name})
  set(registered)
  if(arg_RANKS)
    foreach(ranks ${arg_RANKS})
      list(APPEND registered ${name}.np${ranks})
      tutti_register(${name}.np${ranks} "${arg_LABELS}"
                     ${CMAKE_SOURCE_DIR}/tools/mpirun.sh -np ${ranks} $<TARGET_FILE:${name}>)
      tutti_sanitized_mpi(${name}.np${ranks})
    endforeach()
  elseif(arg_SHARDS)
    foreach(shard RANGE 1 ${arg_SHARDS})
      math(EXPR index "${shard} - 1")
      list(APPEND registered ${name}.${shard})
      tutti_register(${name}.${shard} "${arg_LABELS}" ${name})
      set_property(TEST ${name}.${shard} APPEND PROPERTY ENVIRONMENT
        GTEST_TOTAL_SHARDS=${arg_SHARDS} GTEST_SHARD_INDEX=${index})
    endforeach()
  else()
    list(APPEND registered ${name})
    tutti_register(${name} "${arg_LABELS}" ${name})
  endif()
  if(arg_SLOTS)
    set_tests_properties(${registered} PROPERTIES PROCESSORS ${arg_SLOTS})
  endif()
  set_property(TEST ${registered} APPEND PROPERTY ENVIRONMENT_MODIFICATION OMP_NUM_THREADS=set:1)
  string(JOIN ":" without ${arg_ALONE} ${TUTTI_LEFT_OUT})
  if(without)
    set_property(TEST ${registered} APPEND PROPERTY ENVIRONMENT GTEST_FILTER=-${without})
  endif()
  if(arg_ALONE)
    tutti_register(${name}.alone "${arg_LABELS}" ${name})
    set_tests_properties(${name}.alone PROPERTIES RUN_SERIAL ON ENVIRONMENT GTEST_FILTER=${arg_ALONE})
  endif()
endfunction()

function(tutti_compile_cold target)
  target_compile_options(${target} PRIVATE ${TUTTI_COLD_OPTIONS})
  tutti_precompile(${target} tutti_precompiled_cold)
  tutti_unite(${target} 16)
endfunction()

function(tutti_compile_as_test target)
  target_compile_options(${target} PRIVATE ${TUTTI_COLD_OPTIONS} -Wno-dangling-else)  # of GoogleTest's macros
  tutti_precompile(${target} tutti_precompiled_for_tests)
  tutti_unite(${target} 5)
endfunction()

# Compiles so many sources of `target` at once: what each instantiates of the standard library and of libtorch
# is then compiled once for all of them.
function(tutti_unite target sources)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TUTTI_UNITY} UNITY_BUILD_BATCH_SIZE ${sources})
  if(TUTTI_UNITY)  # gcc takes the sources for headers, whose classes others might see
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# tutti_register(name labels command...): a test for ctest; exit code 77 means skipped. `make test` gives
# ctest three slots for each core and one more. A test takes PROCESSORS 3 slots if it computes, 1 if it waits
# for most of the time, 6 if it computes on two cores. Threads of OpenMP that wait leave the cores to others;
# programs of googletest have one, and more where a test asks for them.
function(tutti_register name labels)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 1800 SKIP_RETURN_CODE 77 PROCESSORS 3)
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT_MODIFICATION OMP_WAIT_POLICY=set:passive)
  tutti_sanitized(${name})
endfunction()
