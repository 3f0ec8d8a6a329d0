# Every third-party package, found once. What is missing is named together with the way to get it.
function(tutti_need package hint)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "tutti needs ${package}, which was not found. Get it with: ${hint}\n"
                        "(`make setup` installs everything on Debian.)")
  endif()
endfunction()

find_package(Threads REQUIRED)
find_package(PkgConfig QUIET)
tutti_need(PkgConfig "apt-get install pkg-config")

find_package(spdlog QUIET)
tutti_need(spdlog "apt-get install libspdlog-dev")
find_package(CLI11 QUIET)
tutti_need(CLI11 "apt-get install libcli11-dev")
find_package(nlohmann_json QUIET)
tutti_need(nlohmann_json "apt-get install nlohmann-json3-dev")

pkg_check_modules(TOMLPLUSPLUS QUIET IMPORTED_TARGET tomlplusplus)
tutti_need(TOMLPLUSPLUS "apt-get install libtomlplusplus-dev")
pkg_check_modules(XXHASH QUIET IMPORTED_TARGET libxxhash)
tutti_need(XXHASH "apt-get install libxxhash-dev")

find_package(HDF5 QUIET COMPONENTS C)
tutti_need(HDF5 "apt-get install libhdf5-dev")
add_library(tutti_hdf5 INTERFACE)
target_include_directories(tutti_hdf5 SYSTEM INTERFACE ${HDF5_INCLUDE_DIRS})
target_link_libraries(tutti_hdf5 INTERFACE ${HDF5_C_LIBRARIES})

find_package(MPI QUIET COMPONENTS C)
tutti_need(MPI "apt-get install libopenmpi-dev openmpi-bin")

include(torch)

if(TUTTI_TESTS)
  find_package(GTest QUIET)
  tutti_need(GTest "apt-get install libgtest-dev libgmock-dev")
endif()
if(TUTTI_BENCH)
  find_package(benchmark QUIET)
  tutti_need(benchmark "apt-get install libbenchmark-dev")
endif()
