# Installs the headers of FOLDERS below SOURCE_DIR into include/tutti, and rewrites their includes of tutti
# from "io/disk.h" to <tutti/io/disk.h>: so a user's include path needs only include/, without general names
# such as io/ or data/. cmake/binaries.cmake runs this script at `cmake --install`.
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
# <tutti/tutti.h> is all that most programs include.
file(RENAME ${installed}/commands/program/tutti.h ${installed}/tutti.h)
list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${CMAKE_INSTALL_PREFIX}/include/tutti/tutti.h)
message(STATUS "Installed: ${installed}")
