# Precompiles libtorch's headers, and GoogleTest's for tests, once for all targets that link tutti_torch.
# Sources still include all headers they use, so that -DTUTTI_PCH=OFF builds too.
set(TUTTI_COLD_OPTIONS $<$<CONFIG:Release>:-Og>)

function(tutti_add_precompiled name)
  cmake_parse_arguments(arg "" "" "HEADERS;OPTIONS;DEPENDS" ${ARGN})
  file(WRITE ${CMAKE_BINARY_DIR}/${name}.cpp "")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE tutti_torch ${arg_DEPENDS})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

if(TUTTI_PCH)
  set(headers <ATen/ATen.h> <torch/csrc/autograd/variable.h>)
  tutti_add_precompiled(tutti_precompiled HEADERS ${headers})
  tutti_add_precompiled(tutti_precompiled_cold HEADERS ${headers} OPTIONS ${TUTTI_COLD_OPTIONS})
  if(TUTTI_TESTS)
    tutti_add_precompiled(tutti_precompiled_for_tests
      HEADERS ${headers} <gmock/gmock.h> <gtest/gtest.h>
      OPTIONS ${TUTTI_COLD_OPTIONS}
      DEPENDS GTest::gtest GTest::gmock)
  endif()
endif()

# tutti_links(out target wanted): whether `target` links `wanted`, directly or through other targets.
function(tutti_links out target wanted)
  set(${out} OFF PARENT_SCOPE)
  get_target_property(pending ${target} LINK_LIBRARIES)
  set(seen)
  while(pending)
    list(POP_FRONT pending next)
    if(next STREQUAL wanted)
      set(${out} ON PARENT_SCOPE)
      return()
    endif()
    if(TARGET "${next}" AND NOT next IN_LIST seen)
      list(APPEND seen ${next})
      get_target_property(more ${next} INTERFACE_LINK_LIBRARIES)
      if(more)
        list(APPEND pending ${more})
      endif()
    endif()
  endwhile()
endfunction()

# tutti_precompile(target precompiled): makes `target` use the headers of tutti_add_precompiled if it links
# libtorch. The flags must be the same, so executables are compiled with -fPIC too.
function(tutti_precompile target precompiled)
  tutti_links(uses_torch ${target} tutti_torch)
  if(TUTTI_PCH AND uses_torch)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fPIC>)
    target_precompile_headers(${target} REUSE_FROM ${precompiled})
  endif()
endfunction()
