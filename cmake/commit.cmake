# cmake -DSOURCE_DIR=... -DOUTPUT=... -P commit.cmake: writes a source with the commit of the working tree.
# Does not touch the source if it is up to date.
set(TUTTI_COMMIT unknown)
if(EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env GIT_OPTIONAL_LOCKS=0 git describe --always --dirty
                  WORKING_DIRECTORY ${SOURCE_DIR}
                  RESULT_VARIABLE failed OUTPUT_VARIABLE found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed AND found)
    set(TUTTI_COMMIT ${found})
  endif()
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/commit.cpp.in ${OUTPUT} @ONLY)
