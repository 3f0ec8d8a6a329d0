# Sanitizers: -DTUTTI_SANITIZE=address,undefined, by gcc's names for -fsanitize=. A finding ends the process,
# with exit code 99. Libraries of others are not instrumented: what they do in memory of tutti's is seen only
# where they call memcpy and the like.
set(TUTTI_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=: address,undefined")
set(TUTTI_LEFT_OUT)
set(TUTTI_LOOPS -O3)  # of sources whose loops must become vectors
if(NOT TUTTI_SANITIZE)
  foreach(name tutti_sanitized tutti_sanitized_mpi tutti_sanitized_runs)
    function(${name})
    endfunction()
  endforeach()
  return()
endif()
set(TUTTI_LOOPS -O1)  # gcc 12 crashes on -O3 after headers that were precompiled with -O1

# gcc's manual: under sanitizers it may warn of variables that are set.
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -g1 -Wno-maybe-uninitialized")
set(flags -D_GLIBCXX_ASSERTIONS -fno-omit-frame-pointer
  -fsanitize=${TUTTI_SANITIZE} -fno-sanitize-recover=undefined)
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${flags}>")
add_link_options($<$<LINK_LANGUAGE:CXX>:-fsanitize=${TUTTI_SANITIZE}>)

# Tests, and cases of tests, that cannot run so: AddressSanitizer reserves 20 TB of addresses, which count for
# `ulimit -v`, its operator new calls no std::new_handler and throws no std::bad_alloc; and start takes long.
set(TUTTI_LEFT_OUT runs_real_memory MeterTest.OperatorNewEmptiesTheCache
  Executable.PrintsItsHelpAndCatalogsWithinATenthOfASecond)

# The program reports signals, and a lack of memory; tests preload libraries, before that of the sanitizer.
string(JOIN ":" TUTTI_ASAN_OPTIONS
  exitcode=99 handle_segv=0 handle_sigbus=0 handle_sigfpe=0 use_sigaltstack=0 allocator_may_return_null=1
  verify_asan_link_order=0 quarantine_size_mb=64
  suppressions=${CMAKE_SOURCE_DIR}/cmake/foreign.supp)
set(TUTTI_LSAN_OPTIONS "suppressions=${CMAKE_SOURCE_DIR}/cmake/leaks.supp:print_suppressions=0")

# tutti_sanitized(test): the sanitizers' options for this test, or DISABLED if it is left out.
function(tutti_sanitized test)
  set_property(TEST ${test} PROPERTY TIMEOUT 1800)
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT_MODIFICATION
    "ASAN_OPTIONS=set:${TUTTI_ASAN_OPTIONS}" "LSAN_OPTIONS=set:${TUTTI_LSAN_OPTIONS}"
    "UBSAN_OPTIONS=set:exitcode=99:print_stacktrace=1")
  if(test IN_LIST TUTTI_LEFT_OUT)
    set_property(TEST ${test} PROPERTY DISABLED ON)
  endif()
endfunction()

# tutti_sanitized_mpi(test...): for tests whose processes start MPI. Open MPI unloads its components before
# leaks are looked for, so that only callers show whose a leak is, and only slow unwinding finds all callers.
function(tutti_sanitized_mpi)
  set_property(TEST ${ARGN} APPEND PROPERTY ENVIRONMENT_MODIFICATION
    "ASAN_OPTIONS=string_append::fast_unwind_on_malloc=0")
endfunction()

# tutti_sanitized_runs(test...): for tests that start the program many times, mostly under mpirun. Tests that
# call the same code look for leaks. Programs that they build against tutti must be sanitized too.
function(tutti_sanitized_runs)
  set_property(TEST ${ARGN} APPEND PROPERTY ENVIRONMENT_MODIFICATION
    "ASAN_OPTIONS=string_append::detect_leaks=0" "CXXFLAGS=set:-fsanitize=${TUTTI_SANITIZE}")
endfunction()
