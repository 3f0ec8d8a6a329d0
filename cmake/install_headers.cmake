# Installs the headers of FOLDERS below SOURCE_DIR into include/tutti. What a header includes of tutti is
# rewritten from "io/disk.h" to <tutti/io/disk.h>: so include/ alone is on a user's path, and no name as
# general as io/ or data/ gets there. cmake/binaries.cmake runs this at `cmake --install`.
set(installed "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/include/tutti")
list(JOIN FOLDERS "|" any_folder)
foreach(folder ${FOLDERS})
  file(GLOB_RECURSE headers RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/${folder}/*.h)
  foreach(header ${headers})
    file(READ ${SOURCE_DIR}/${header} text)
    string(REGEX REPLACE "#include \"((${any_folder})/[^\"]+)\"" "#include <tutti/\\1>" text "${text}")
    file(WRITE ${installed}/${header} "${text}")
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${CMAKE_INSTALL_PREFIX}/include/tutti/${header})
  endforeach()
endforeach()
message(STATUS "Installed: ${installed}")
