# tutti_embed(out NAME FILE ...): for each pair, a source in the build folder with the text of the file as
# `extern const char NAME[]` in namespace tutti; `out` becomes the list of these sources.
function(tutti_embed out)
  set(sources)
  while(ARGN)
    list(POP_FRONT ARGN name file)
    get_filename_component(input ${file} ABSOLUTE)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${file}.cpp)
    add_custom_command(OUTPUT ${source}
      COMMAND ${CMAKE_COMMAND} -D NAME=${name} -D INPUT=${input} -D OUTPUT=${source}
              -P ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake
      DEPENDS ${input} ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake
      VERBATIM)
    list(APPEND sources ${source})
  endwhile()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()
