# Installs what TUTTI_COMMAND writes of itself: completion scripts, the man page, and the JSON Schema of
# recipes. cmake/binaries.cmake runs this script at `cmake --install`.
function(tutti_install_output path)
  set(file "${CMAKE_INSTALL_PREFIX}/share/${path}")
  get_filename_component(folder "$ENV{DESTDIR}${file}" DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  execute_process(COMMAND ${TUTTI_COMMAND} ${ARGN} OUTPUT_FILE "$ENV{DESTDIR}${file}"
                  COMMAND_ERROR_IS_FATAL ANY)
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${file})
  set(CMAKE_INSTALL_MANIFEST_FILES ${CMAKE_INSTALL_MANIFEST_FILES} PARENT_SCOPE)
  message(STATUS "Installed: $ENV{DESTDIR}${file}")
endfunction()

tutti_install_output(bash-completion/completions/tutti completion bash)
tutti_install_output(zsh/site-functions/_tutti completion zsh)
tutti_install_output(fish/vendor_completions.d/tutti.fish completion fish)
tutti_install_output(man/man1/tutti.1 man)
tutti_install_output(tutti/tutti.schema.json explain --schema)
