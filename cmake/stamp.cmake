# The build stamp: the versions that libtutti.so, libtutti_cuda.so and plugins must share.
set(TUTTI_BUILD_STAMP "tutti ${PROJECT_VERSION}, libtorch ${TUTTI_TORCH_VERSION}, ")
string(APPEND TUTTI_BUILD_STAMP "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")

# tutti_stamp(target name): `target` exports the C function const char* <name>_build_stamp().
function(tutti_stamp target name)
  set(TUTTI_STAMPED ${name})
  set(source ${CMAKE_BINARY_DIR}/${target}_build_stamp.cpp)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/build_stamp.cpp.in ${source} @ONLY)
  target_sources(${target} PRIVATE ${source})
endfunction()

# tutti_add_commit(target): `target` exports the C function const char* tutti_commit(), the commit of its
# sources. After a new commit one source of one line is compiled and linked.
function(tutti_add_commit target)
  set(source ${CMAKE_BINARY_DIR}/${target}_commit.cpp)
  add_custom_target(${target}_commit
    COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DOUTPUT=${source}
            -P ${CMAKE_SOURCE_DIR}/cmake/commit.cmake
    BYPRODUCTS ${source}
    COMMENT "The commit of the sources"
    VERBATIM)
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${source})
  add_dependencies(${target} ${target}_commit)
endfunction()
