# libtutti_cuda.so: all code that needs CUDA, loaded only on machines with a GPU. TUTTI_CUDA=AUTO builds the
# library if nvcc, libtorch's CUDA part and NCCL are found, else says what is missing; ON requires them; OFF
# skips them.
function(tutti_find_cuda lacks)
  include(CheckLanguage)
  check_language(CUDA)
  find_path(TUTTI_NCCL_INCLUDE nccl.h HINTS ${TUTTI_TORCH_DIR}/../nvidia/nccl/include)
  find_library(TUTTI_NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${TUTTI_TORCH_DIR}/../nvidia/nccl/lib)
  set(lacking)
  if(NOT CMAKE_CUDA_COMPILER)
    set(lacking "nvcc (NVIDIA's CUDA toolkit; nvcc on PATH, or CUDACXX=/path/to/nvcc)")
  elseif(NOT EXISTS ${TUTTI_TORCH_DIR}/lib/libtorch_cuda.so)
    set(lacking "libtorch's CUDA half (${TUTTI_TORCH_DIR} is a build for CPUs; `make setup` installs both)")
  elseif(NOT TUTTI_NCCL_INCLUDE OR NOT TUTTI_NCCL_LIBRARY)
    set(lacking "NCCL (libnccl-dev of NVIDIA's repository, or the nvidia-nccl wheel beside torch)")
  endif()
  set(${lacks} "${lacking}" PARENT_SCOPE)
endfunction()

# libtorch and nvcc must use the same CUDA runtime: two runtimes in a process do not share state.
function(tutti_check_cuda_version lacks)
  if(NOT EXISTS ${TUTTI_TORCH_DIR}/version.py)
    return()
  endif()
  file(READ ${TUTTI_TORCH_DIR}/version.py version)
  string(REGEX REPLACE ".*cuda[^=]*= '([0-9]+).*" "\\1" wanted "${version}")
  string(REGEX REPLACE "^([0-9]+).*" "\\1" found "${CMAKE_CUDA_COMPILER_VERSION}")
  if(wanted MATCHES "^[0-9]+$" AND NOT wanted EQUAL found)
    set(lacking "nvcc of CUDA ${wanted}, as libtorch was built with (here: ${CMAKE_CUDA_COMPILER_VERSION})")
    set(${lacks} "${lacking}" PARENT_SCOPE)
  endif()
endfunction()

function(tutti_cuda_library)
  add_library(tutti_cuda SHARED
    ${CMAKE_SOURCE_DIR}/collectives/nccl/communicator.cpp
    ${CMAKE_SOURCE_DIR}/collectives/nccl/entry.cpp
    ${CMAKE_SOURCE_DIR}/tensors/cuda/cross_entropy.cu
    ${CMAKE_SOURCE_DIR}/tensors/cuda/device.cu
    ${CMAKE_SOURCE_DIR}/tensors/cuda/digests.cu
    ${CMAKE_SOURCE_DIR}/tensors/cuda/draws.cu
    ${CMAKE_SOURCE_DIR}/tensors/cuda/graph.cpp
    ${CMAKE_SOURCE_DIR}/tensors/cuda/layer_norm.cu
    ${CMAKE_SOURCE_DIR}/tensors/cuda/norms.cu
    ${CMAKE_SOURCE_DIR}/tensors/cuda/operators.cpp)
  # Functions for kernels of all devices (tensors/kernels) are constexpr.
  target_compile_options(tutti_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  tutti_stamp(tutti_cuda tutti_device)
  target_include_directories(tutti_cuda SYSTEM PRIVATE ${TUTTI_NCCL_INCLUDE}
                                                       ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  # Linked even if no symbol is used: the kernels register themselves when the library is loaded.
  target_link_options(tutti_cuda PRIVATE LINKER:--no-as-needed)
  target_link_libraries(tutti_cuda PRIVATE tutti_shared ${TUTTI_TORCH_DIR}/lib/libtorch_cuda.so
                                           ${TUTTI_TORCH_DIR}/lib/libc10_cuda.so ${TUTTI_NCCL_LIBRARY})
  file(GLOB nvidia ${TUTTI_TORCH_DIR}/../nvidia/*/lib)
  set_target_properties(tutti_cuda PROPERTIES CUDA_STANDARD 17 BUILD_RPATH "${TUTTI_TORCH_DIR}/lib;${nvidia}"
                                              INSTALL_RPATH "$ORIGIN;${TUTTI_TORCH_DIR}/lib;${nvidia}")
  install(TARGETS tutti_cuda LIBRARY DESTINATION lib)
  tutti_tell_cuda_versions()
endfunction()

# For `tutti --version`.
function(tutti_tell_cuda_versions)
  file(STRINGS ${TUTTI_NCCL_INCLUDE}/nccl.h lines REGEX "define NCCL_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCH ([0-9]+).*" "\\1.\\2.\\3" nccl "${lines}")
  target_compile_definitions(tutti_command_line PRIVATE
    TUTTI_CUDA_RELEASE="${CMAKE_CUDA_COMPILER_VERSION}" TUTTI_NCCL_RELEASE="${nccl}")
endfunction()

if(TUTTI_CUDA AND TARGET tutti_shared)
  tutti_find_cuda(lacks)
  if(NOT lacks)
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80 90)
    endif()
    set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
    enable_language(CUDA)
    tutti_check_cuda_version(lacks)
  endif()
  if(NOT lacks)
    message(STATUS "libtutti_cuda.so: CUDA ${CMAKE_CUDA_COMPILER_VERSION}, NCCL in ${TUTTI_NCCL_LIBRARY}")
    tutti_cuda_library()
  elseif(TUTTI_CUDA STREQUAL AUTO)
    message(STATUS "libtutti_cuda.so is not built: it needs ${lacks}")
  else()
    message(FATAL_ERROR "TUTTI_CUDA=${TUTTI_CUDA}, but it needs ${lacks}")
  endif()
endif()
