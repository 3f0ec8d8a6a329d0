# -DTUTTI_FUZZ=ON: everything is compiled for libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer, and
# the target tutti_fuzz is there (tests/fuzz). Needs clang >= 16; tests/fuzz.sh configures such a build.
option(TUTTI_FUZZ "Build for libFuzzer (clang; tests/fuzz.sh)" OFF)

if(TUTTI_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
    message(FATAL_ERROR "TUTTI_FUZZ needs clang >= 16; on Debian:\n"
                        "  apt-get install clang-16 libclang-rt-16-dev\n"
                        "  cmake -DCMAKE_C_COMPILER=clang-16 -DCMAKE_CXX_COMPILER=clang++-16 ...")
  endif()
  # A float that does not fit into an integer is checked by UndefinedBehaviorSanitizer only if asked.
  add_compile_options(-O1 -g1 -D_GLIBCXX_ASSERTIONS -fno-omit-frame-pointer -fno-sanitize-recover=all
                      -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow
                      -fsanitize-ignorelist=${CMAKE_SOURCE_DIR}/cmake/fuzz_ignored.txt)
  add_link_options(-fsanitize=address,undefined)
endif()
