# The shared libraries, and the rules for `cmake --install`. libtutti.so joins the libraries of all folders;
# plugins and libtutti_cuda.so link it.
include(GNUInstallDirs)
get_property(libraries GLOBAL PROPERTY TUTTI_LIBRARIES)
get_property(cold GLOBAL PROPERTY TUTTI_COLD_LIBRARIES)
list(APPEND libraries ${cold})  # last: of an inline function that several have, the linker takes the first

if(libraries)
  add_library(tutti_shared SHARED)
  set_target_properties(tutti_shared PROPERTIES OUTPUT_NAME tutti)
  tutti_stamp(tutti_shared tutti_shared)
  tutti_add_commit(tutti_shared)
  foreach(library ${libraries})
    target_sources(tutti_shared PRIVATE $<TARGET_OBJECTS:${library}>)
    get_target_property(depends ${library} LINK_LIBRARIES)
    list(REMOVE_ITEM depends ${libraries})
    target_link_libraries(tutti_shared PRIVATE ${depends})
  endforeach()
  # Its own functions call each other without a look at the names of other libraries: it starts sooner.
  target_link_options(tutti_shared PRIVATE LINKER:-z,defs LINKER:-Bsymbolic-functions)
  target_include_directories(tutti_shared INTERFACE ${CMAKE_SOURCE_DIR})
  target_link_libraries(tutti_shared INTERFACE tutti_torch)
  install(TARGETS tutti_shared LIBRARY DESTINATION lib)
  include(package)
endif()
include(cuda)
include(parquet)

if(TARGET tutti)
  if(TARGET tutti_parquet)
    add_dependencies(tutti tutti_parquet)  # opened at run time
  endif()
  if(TARGET tutti_shared)
    add_dependencies(tutti tutti_shared)  # opened at run time
  endif()
  add_custom_target(tutti_parts)  # all that `cmake --install` takes
  foreach(part tutti tutti_shared tutti_cuda tutti_parquet)
    if(TARGET ${part})
      add_dependencies(tutti_parts ${part})
    endif()
  endforeach()
  install(TARGETS tutti RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(CODE "set(TUTTI_COMMAND [[$<TARGET_FILE:tutti>]])")
  install(SCRIPT ${CMAKE_SOURCE_DIR}/cmake/install_help.cmake)
endif()
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tutti/examples
        PATTERN "build*" EXCLUDE)
set(folders runtime recipe tensors io analysis data collectives models training sharding algorithms job
            actors sim commands)
install(CODE "set(SOURCE_DIR [[${CMAKE_SOURCE_DIR}]])\nset(FOLDERS ${folders})")
install(SCRIPT ${CMAKE_SOURCE_DIR}/cmake/install_headers.cmake)
