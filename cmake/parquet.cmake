# libtutti_parquet.so: reads and writes Parquet by the libarrow and libparquet of a pyarrow wheel, which
# brings their headers, too. Built where that folder is found; loaded for recipes that name Parquet files.
set(folder $ENV{HOME}/.cache/tutti/pyarrow-26.0.1/pyarrow)
if(DEFINED ENV{XDG_CACHE_HOME})
  set(folder $ENV{XDG_CACHE_HOME}/tutti/pyarrow-26.0.1/pyarrow)
endif()
set(TUTTI_PYARROW_DIR "${folder}" CACHE PATH "A pyarrow: the folder with include/ and libparquet.so.*")
file(GLOB parquet ${TUTTI_PYARROW_DIR}/libparquet.so.*)
file(GLOB arrow ${TUTTI_PYARROW_DIR}/libarrow.so.*)

if(parquet AND arrow AND EXISTS ${TUTTI_PYARROW_DIR}/include/parquet/arrow/reader.h)
  add_library(tutti_parquet SHARED ${CMAKE_SOURCE_DIR}/io/tables/parquet_rows.cpp
                                   ${CMAKE_SOURCE_DIR}/io/tables/parquet_table.cpp)
  target_include_directories(tutti_parquet PRIVATE ${CMAKE_SOURCE_DIR})
  target_include_directories(tutti_parquet SYSTEM PRIVATE ${TUTTI_PYARROW_DIR}/include)
  target_link_libraries(tutti_parquet PRIVATE ${parquet} ${arrow})
  target_link_options(tutti_parquet PRIVATE LINKER:-z,defs)
  set_target_properties(tutti_parquet PROPERTIES CXX_VISIBILITY_PRESET hidden
    BUILD_RPATH ${TUTTI_PYARROW_DIR} INSTALL_RPATH ${TUTTI_PYARROW_DIR})
  install(TARGETS tutti_parquet LIBRARY DESTINATION lib)
  message(STATUS "Parquet: ${TUTTI_PYARROW_DIR}")
else()
  message(STATUS "libtutti_parquet.so is not built: there is no pyarrow in ${TUTTI_PYARROW_DIR} "
                 "(`make setup` installs it)")
endif()
