# What `tutti --version` says, as far as it is known when tutti is built. The MPI library is asked at run
# time: it is opened by its soname.
set(release ${TUTTI_TORCH_VERSION})
if(EXISTS ${TUTTI_TORCH_DIR}/version.py)
  file(STRINGS ${TUTTI_TORCH_DIR}/version.py lines REGEX "^__version__ = ")
  string(REGEX REPLACE ".*'([^']+)'.*" "\\1" release "${lines}")
elseif(EXISTS ${TUTTI_TORCH_DIR}/build-version)
  file(STRINGS ${TUTTI_TORCH_DIR}/build-version release LIMIT_COUNT 1)
endif()

list(GET MPI_C_LIBRARIES 0 mpi)
file(REAL_PATH ${mpi} mpi)
string(REGEX REPLACE ".*/(lib[^/]*\\.so\\.[0-9]+).*" "\\1" mpi "${mpi}")

target_compile_definitions(tutti_command_line PRIVATE
  TUTTI_VERSION="${PROJECT_VERSION}"
  TUTTI_COMPILER="${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_BUILD_TYPE}"
  TUTTI_TORCH_RELEASE="${release}"
  TUTTI_MPI_LIBRARY="${mpi}")
