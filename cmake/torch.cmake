# The target tutti_torch: libtorch's CPU part. TUTTI_TORCH_DIR (cache variable or environment) is the folder
# of a libtorch >= 2.9, with include/ and lib/; default: the wheel that tools/setup.sh installed in the
# user's cache.
set(TUTTI_TORCH_DIR "$ENV{TUTTI_TORCH_DIR}" CACHE PATH "A libtorch: the folder with include/ and lib/")
if(DEFINED ENV{TUTTI_TORCH_DIR} AND NOT "$ENV{TUTTI_TORCH_DIR}" STREQUAL "${TUTTI_TORCH_DIR_OF_ENVIRONMENT}")
  set(TUTTI_TORCH_DIR "$ENV{TUTTI_TORCH_DIR}" CACHE PATH "" FORCE)  # it has changed since the last time
endif()
set(TUTTI_TORCH_DIR_OF_ENVIRONMENT "$ENV{TUTTI_TORCH_DIR}" CACHE INTERNAL "")
set(wheel $ENV{HOME}/.cache/tutti/torch-2.11.0)
if(DEFINED ENV{XDG_CACHE_HOME})
  set(wheel $ENV{XDG_CACHE_HOME}/tutti/torch-2.11.0)
endif()
if(NOT TUTTI_TORCH_DIR)
  file(GLOB TUTTI_TORCH_DIR ${wheel}/lib/python3*/site-packages/torch)
endif()

if(NOT EXISTS "${TUTTI_TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "tutti needs libtorch >= 2.9, not found at '${TUTTI_TORCH_DIR}'. `make setup` "
                      "installs it under ${wheel}; one of your own is named by "
                      "cmake -DTUTTI_TORCH_DIR=/path/to/libtorch (the folder with include/ and lib/)")
endif()
foreach(header headeronly/version.h csrc/api/include/torch/version.h)
  if(EXISTS ${TUTTI_TORCH_DIR}/include/torch/${header} AND NOT TUTTI_TORCH_VERSION)
    file(STRINGS ${TUTTI_TORCH_DIR}/include/torch/${header} lines REGEX "define TORCH_VERSION_(MAJOR|MINOR) ")
    string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" TUTTI_TORCH_VERSION "${lines}")
  endif()
endforeach()
if(NOT TUTTI_TORCH_VERSION VERSION_GREATER_EQUAL 2.9)
  message(FATAL_ERROR "tutti needs libtorch >= 2.9; ${TUTTI_TORCH_DIR} is ${TUTTI_TORCH_VERSION}")
endif()
message(STATUS "libtorch ${TUTTI_TORCH_VERSION}: ${TUTTI_TORCH_DIR}")

add_library(tutti_torch INTERFACE)
target_include_directories(tutti_torch SYSTEM INTERFACE ${TUTTI_TORCH_DIR}/include)
target_link_libraries(tutti_torch INTERFACE ${TUTTI_TORCH_DIR}/lib/libtorch_cpu.so
                                            ${TUTTI_TORCH_DIR}/lib/libc10.so)
set(CMAKE_BUILD_RPATH ${TUTTI_TORCH_DIR}/lib)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib;${TUTTI_TORCH_DIR}/lib")

# A Python with h5py, torch and numpy, for tests that read tutti's files; tests are skipped if a module is
# missing.
find_program(TUTTI_PYTHON python3 HINTS ${wheel}/bin NO_CMAKE_ENVIRONMENT_PATH)
